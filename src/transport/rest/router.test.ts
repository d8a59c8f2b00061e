import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError, Code } from '../../base/errors.ts';
import type { Method, Verb } from '../../contract/method.ts';
import { files, methodTable } from '../../contract/method-table.ts';
import { createRouter } from './router.ts';

const methods = methodTable(files);
const route = createRouter(methods);

/** `GetGroup uid=abc`, `405 GET,POST` or `404`. */
function outcome(verb: string, path: string, router = route): string {
  const match = router(verb, path);
  if (match.kind === 'no match') return '404';
  if (match.kind === 'verb not allowed') return `405 ${match.allow.toSorted().join(',')}`;
  return [match.method.desc.name, ...match.variables.map(({ field, text }) => `${field}=${text}`)].join(' ');
}

const org = '0'.repeat(40);
const child = `${org}/${'1'.repeat(16)}`;
const sample: Record<string, string> = { '=**': child, '=*': 'one', '': 'one' };

test('every route of the contract leads to its own method', () => {
  assert.notEqual(methods.length, 0);
  for (const { desc, routes } of methods) {
    for (const { verb, template } of routes) {
      const path = template.replace(/\{[\w.]+(=\*\*?)?\}/g, (_, pattern?: string) => sample[pattern ?? ''] ?? '');
      assert.equal(outcome(verb, path).split(' ')[0], desc.name, `${verb} ${path}`);
    }
  }
});

// The overlaps of v2 that existing clients rely on.
const overlaps: [Verb, string, string][] = [
  ['GET', `/registry/v2/repos/${child}/readme`, `GetRepoReadme uid=${child}`],
  ['PATCH', `/registry/v2/repos/${child}/readme`, `UpdateRepoReadme repo_readme.uid=${child}`],
  ['PATCH', `/registry/v2/repos/${child}`, `UpdateRepo repo.uid=${child}`],
  ['GET', `/registry/v2/repos/${child}`, `GetRepo uid=${child}`],
  ['GET', `/registry/v2/repos/${child}/digests/sha256:ab/size`, `GetSize repo_uid=${child} digest=sha256:ab`],
  [
    'GET',
    `/registry/v2/repos/${child}/digests/sha256:ab/architectures`,
    `GetArchitectures repo_uid=${child} digest=sha256:ab`,
  ],
  ['GET', '/libraries/v2/artifacts/count', 'GetArtifactCount'],
  ['GET', '/libraries/v2/artifacts/count/versions', 'ListArtifactVersions artifact_id=count'],
  ['GET', '/iam/v2/groups:lookupGroup', 'LookupGroup'],
  ['PATCH', '/iam/v2/identities:updateIdentityMetadata', 'UpdateIdentityMetadata'],
];
for (const [verb, path, expected] of overlaps) {
  test(`${verb} ${path} is ${expected}`, () => assert.equal(outcome(verb, path), expected));
}

test('every list route is preferred to the get route that matches its path with an empty uid', () => {
  const gets = methods.filter(({ routes }) => routes.some((r) => r.verb === 'GET' && r.template.endsWith('/{uid=**}')));
  assert.ok(gets.length >= 12);
  for (const { routes } of gets) {
    const list = routes[0]?.template.replace('/{uid=**}', '') ?? '';
    if (methods.some((method) => method.routes.some((r) => r.verb === 'GET' && r.template === list))) {
      assert.match(outcome('GET', list), /^List/);
    }
    assert.match(outcome('GET', `${list}/`), /^Get\w* uid=$/);
  }
});

test('overlaps of v1: a literal after the shared prefix is preferred, and so is one after **', () => {
  const [method] = methods;
  assert.ok(method);
  const v1 = createRouter([
    {
      ...method,
      routes: [
        { verb: 'POST', template: '/iam/v1/rolebindings/{parent=**}', body: '*' },
        { verb: 'POST', template: '/iam/v1/rolebindings/batch/{batch=**}', body: '*' },
        { verb: 'POST', template: '/iam/v1/identities/{parent_id=**}', body: '*' },
        { verb: 'POST', template: '/iam/v1/identities', body: '*' },
        { verb: 'PUT', template: '/registry/v1/repos/{id=**}', body: '*' },
        { verb: 'PUT', template: '/registry/v1/repos/{repo_id=**}/deployment', body: '*' },
        { verb: 'GET', template: '/registry/v1/entitlements/{parent=**}', body: undefined },
        { verb: 'GET', template: '/registry/v1/entitlements/{images=**}/images', body: undefined },
        { verb: 'GET', template: '/registry/v1/entitlements/{catalog=**}/catalog-images', body: undefined },
      ],
    } satisfies Method,
  ]);
  const variables = (verb: Verb, path: string) => outcome(verb, path, v1).split(' ').slice(1).join(' ');
  assert.equal(variables('POST', '/iam/v1/rolebindings/a/b'), 'parent=a/b');
  assert.equal(variables('POST', '/iam/v1/rolebindings/batch/a/b'), 'batch=a/b');
  assert.equal(variables('POST', '/iam/v1/rolebindings/batch'), 'batch=');
  assert.equal(variables('POST', '/iam/v1/identities'), '');
  assert.equal(variables('POST', '/iam/v1/identities/'), 'parent_id=');
  assert.equal(variables('PUT', '/registry/v1/repos/a/deployment'), 'repo_id=a');
  assert.equal(variables('GET', '/registry/v1/entitlements/a'), 'parent=a');
  assert.equal(variables('GET', '/registry/v1/entitlements/a/images'), 'images=a');
  assert.equal(variables('GET', '/registry/v1/entitlements/a/catalog-images'), 'catalog=a');
});

test('a root group is created with no parent, with and without a trailing slash', () => {
  assert.equal(outcome('POST', '/iam/v2/groups'), 'CreateGroup parent=');
  assert.equal(outcome('POST', '/iam/v2/groups/'), 'CreateGroup parent=');
});

test('the slashes of uids are sent as they are or as %2F', () => {
  assert.equal(outcome('GET', `/iam/v2/groups/${child}`), `GetGroup uid=${child}`);
  assert.equal(outcome('GET', `/iam/v2/groups/${child.replace('/', '%2F')}`), `GetGroup uid=${child}`);
  assert.equal(outcome('GET', `/registry/v2/repos/${child.replace('/', '%2f')}/readme`), `GetRepoReadme uid=${child}`);
});

test('segments are decoded one by one and only once, also literals', () => {
  assert.equal(outcome('GET', '/iam/v2/groups/%C3%BC%20%2525'), 'GetGroup uid=ü %25');
  assert.equal(outcome('GET', '/iam/v2/gr%6Fups'), 'ListGroups');
  assert.equal(outcome('GET', '/iam%2Fv2/groups'), '404');
  assert.equal(outcome('GET', '/iam/v2/groups/a+b'), 'GetGroup uid=a+b');
});

test('a custom verb is split off only where a route has it', () => {
  assert.equal(outcome('POST', `/iam/v2/groups/${child}:requestGroupAccess`), `RequestGroupAccess group_uid=${child}`);
  assert.equal(outcome('POST', '/iam/v2/groups:requestGroupAccess'), 'RequestGroupAccess group_uid=');
  assert.equal(outcome('GET', '/iam/v2/groups/a:b'), 'GetGroup uid=a:b');
  assert.equal(outcome('GET', '/registry/v2/tags/a:checkAccountAssociation'), 'GetTag uid=a:checkAccountAssociation');
  assert.equal(outcome('GET', '/iam/v2/groups/a%3ArequestGroupAccess'), 'GetGroup uid=a:requestGroupAccess');
});

test('a known path with another verb returns the supported verbs', () => {
  assert.equal(outcome('PUT', '/iam/v2/groups'), '405 DELETE,GET,PATCH,POST');
  assert.equal(outcome('POST', '/ping/v2/ping'), '405 GET');
  assert.equal(outcome('GET', `/iam/v2/groups/${child}:requestGroupAccess`), '405 POST');
  assert.equal(outcome('POST', '/iam/v2/groups:lookupGroup'), '405 GET');
  assert.equal(outcome('BREW', '/ping/v2/ping'), '405 GET');
});

test('an unknown path has no match', () => {
  for (const path of [
    '/',
    '',
    '/iam',
    '/iam/v2',
    '/iam/v2/group',
    '//iam/v2/groups',
    '/ping/v2/ping/',
    '/iam/v3/groups',
    '*',
  ]) {
    assert.equal(outcome('GET', path), '404', path);
  }
});

const malformed: [string, string][] = [
  ['/iam/v2/groups/%zz', 'uid'],
  ['/iam/v2/groups/%', 'uid'],
  ['/iam/v2/groups/a%c3', 'uid'],
  ['/iam/v2/groups/%ff%fe', 'uid'],
  ['/iam/v2/groups/%ed%a0%80', 'uid'],
  ['/iam/v2/groups/a%00', 'uid'],
  ['/iam/v2/groups/a%0d%0ab', 'uid'],
  ['/iam/v2/groups/a/../b', 'uid'],
  ['/iam/v2/groups/a/..%2Fb', 'uid'],
  ['/iam/v2/groups/%2e%2e/b', 'uid'],
  ['/iam/v2/groups/./b', 'uid'],
  ['/iam/v2/groups/..:requestGroupAccess', 'path'],
  ['/iam/v2/groups/%zz:requestGroupAccess', 'path'],
  [`/registry/v2/repos/${child}/digests/../size`, 'digest'],
  ['/iam/../v2/groups', 'path'],
  ['/%00', 'path'],
  ['/unknown/%zz', 'path'],
];
for (const [path, field] of malformed) {
  test(`GET ${path} is INVALID_ARGUMENT on ${field}`, () => {
    assert.throws(
      () => route('GET', path),
      (error) => {
        assert.ok(error instanceof ApiError);
        assert.equal(error.code, Code.INVALID_ARGUMENT);
        assert.ok(error.message.startsWith(`Invalid argument: ${field}: must `), error.message);
        return true;
      },
    );
  });
}

test('names with dots are not dot segments', () => {
  assert.equal(outcome('GET', '/iam/v2/groups/a..b/.c/d.'), 'GetGroup uid=a..b/.c/d.');
});
