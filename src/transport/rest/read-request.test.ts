import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message } from '@bufbuild/protobuf';
import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { methodNamed, methods, violationLines } from '../../contract/contract.testing.ts';
import { ListResolvedVulnsReportsRequestSchema } from '../../contract/gen/chainguard/platform/advisory/v2/advisory_pb.js';
import {
  CreateGroupRequestSchema,
  GetGroupRequestSchema,
  ListGroupsRequestSchema,
  RequestGroupAccessRequestSchema,
  UpdateGroupRequestSchema,
} from '../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import type {
  UpdateIdentityMetadataRequest,
  UpdateIdentityRequest,
} from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { ListReposRequestSchema } from '../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { ListTagsRequestSchema } from '../../contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import { ListAdvisoriesRequestSchema } from '../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import type { Method, Verb } from '../../contract/method.ts';
import { requestReader } from './read-request.ts';
import { createRouter } from './router.ts';

const router = createRouter(methods);

function read(verb: Verb, target: string, json?: string): Message {
  const [path = '', query = ''] = target.split('?');
  const match = router(verb, path);
  assert.ok(match.kind === 'match', target);
  const body = json === undefined ? undefined : ({ type: 'json', text: json } as const);
  return requestReader(match.method, match.route)({ variables: match.variables, query, body }) as Message;
}

const get = (target: string) => read('GET', target);

test('path variables set request fields', () => {
  assert.deepEqual(get('/iam/v2/groups/a/b'), create(GetGroupRequestSchema, { uid: 'a/b' }));
});

test('parameters are accepted in any spelling, nested ones with dots', () => {
  const expected = create(ListGroupsRequestSchema, {
    uidp: { childrenOf: 'a/b', inRoot: false },
    name: 'x y',
    pageSize: 10,
    orderBy: 'name desc',
  });
  assert.deepEqual(get('/iam/v2/groups?uidp.children_of=a/b&name=x+y&page_size=10&order_by=name%20desc'), expected);
  assert.deepEqual(get('/iam/v2/groups?uidp.childrenOf=a%2Fb&name=x%20y&pageSize=10&orderBy=name+desc&'), expected);
});

test('lists are sent by repeating, with commas, or both', () => {
  const expected = create(ListAdvisoriesRequestSchema, {
    artifactNames: ['a', 'b', 'c'],
    eventReviewStates: [1, 2],
    uidp: { ids: ['x', 'y'] },
  });
  const same = (query: string) => assert.deepEqual(get(`/vulnerabilities/v2/advisories?${query}`), expected);
  same('artifactNames=a&artifactNames=b&artifactNames=c&eventReviewStates=1&eventReviewStates=2&uidp.ids=x&uidp.ids=y');
  same(
    'artifact_names=a,b&artifactNames=,c,&event_review_states=REVIEW_STATE_PENDING,REVIEW_STATE_APPROVED&uidp.ids=x,y',
  );
});

test('booleans, times and optional fields', () => {
  assert.deepEqual(
    get('/registry/v2/tags?includeDates=true&updatedSince=2026-01-01T02:00:00+02:00'),
    create(ListTagsRequestSchema, {
      includeDates: true,
      updatedSince: timestampFromDate(new Date('2026-01-01T00:00:00Z')),
    }),
  );
  assert.deepEqual(get('/registry/v2/repos?name='), create(ListReposRequestSchema, { name: '' }));
  assert.deepEqual(get('/registry/v2/repos'), create(ListReposRequestSchema));
});

test('a list of messages is sent with indexes or as JSON objects', () => {
  const expected = create(ListResolvedVulnsReportsRequestSchema, {
    imageRefs: [{ repo: 'r', tags: ['a', 'b'] }, { repo: 's' }],
  });
  const same = (query: string) => assert.deepEqual(get(`/advisory/v2/images/resolvedVulns?${query}`), expected);
  same('image_refs[0].repo=r&imageRefs[0].tags=a&imageRefs%5B0%5D.tags=b&imageRefs[1].repo=s');
  same(`imageRefs=${encodeURIComponent('{"repo":"r","tags":["a","b"]}')}&image_refs={"repo":"s"}`);
});

const refusedQueries: [string, string][] = [
  ['/iam/v2/groups?nope=1', 'nope: is not one of the fields of ListGroupsRequest: uidp, name, pageSize, '],
  ['/iam/v2/groups?uidp.nope=1', 'uidp.nope: is not one of the fields of UIDPFilter: '],
  ['/iam/v2/groups?__proto__=1', '__proto__: is not one of the fields of '],
  ['/iam/v2/groups?uidp.__proto__.x=1', 'uidp.__proto__.x: is not one of the fields of '],
  ['/iam/v2/groups?=1', '"": is not one of the fields of '],
  ['/iam/v2/groups?.=1', '.: is not one of the fields of '],
  ['/iam/v2/groups?name=a&name=b', 'name: may be given only once'],
  ['/iam/v2/groups?pageSize=1&page_size=1', 'page_size: may be given only once'],
  ['/iam/v2/groups?page_size=', 'page_size: must be a whole number from '],
  ['/iam/v2/groups?page_size=1e3', 'page_size: must be a whole number from '],
  ['/iam/v2/groups?page_size=99999999999', 'page_size: must be a whole number from '],
  ['/iam/v2/groups?uidp=abc', 'uidp: must be written as uidp.ancestors_of'],
  ['/iam/v2/groups?name.x=1', 'name.x: must be written as name'],
  ['/iam/v2/groups?name[0]=1', 'name[0]: must be written as name'],
  ['/iam/v2/groups?uidp[0].ids=1', 'uidp[0].ids: must be written as uidp.'],
  ['/iam/v2/groups?name=%zz', 'name: must be percent-encoded UTF-8'],
  ['/iam/v2/groups?name=%ff', 'name: must be percent-encoded UTF-8'],
  ['/iam/v2/groups?%ff=1', 'query: must be percent-encoded UTF-8'],
  ['/iam/v2/groups?name=a%00', 'name: must be a string of '],
  ['/iam/v2/groups/a?uid=b', 'uid: is already given by the path'],
  ['/registry/v2/tags?include_dates=yes', 'include_dates: must be true or false'],
  ['/registry/v2/tags?updated_since=today', 'updated_since: must be an RFC 3339 time'],
  ['/libraries/v2/artifacts?ecosystems=ECOSYSTEM_JAVA,COBOL', 'ecosystems: must be one of ECOSYSTEM_JAVA, '],
  [
    '/advisory/v2/images/resolvedVulns?image_refs=a',
    'image_refs[0]: must be a JSON object, or written as image_refs[0].repo',
  ],
  ['/advisory/v2/images/resolvedVulns?image_refs={"repo":', 'image_refs[0]: must be a JSON object, '],
  [
    '/advisory/v2/images/resolvedVulns?image_refs={"nope":1}',
    'image_refs[0].nope: is not one of the fields of ImageRef: repo, tags',
  ],
  ['/advisory/v2/images/resolvedVulns?image_refs[0]=a', 'image_refs[0]: must be written as image_refs[0].repo'],
  ['/advisory/v2/images/resolvedVulns?image_refs.repo=a', 'image_refs.repo: must be written as image_refs[0].repo'],
  [
    '/advisory/v2/images/resolvedVulns?image_refs[1].repo=a',
    'image_refs[1].repo: must be written as image_refs[0].repo',
  ],
  ['/advisory/v2/images/resolvedVulns?image_refs[999999999].repo=a', 'image_refs[999999999].repo: must be '],
  [
    '/advisory/v2/images/resolvedVulns?image_refs[0].repo=a&image_refs[0].repo=b',
    'image_refs[0].repo: may be given only once',
  ],
];
for (const [target, expected] of refusedQueries) {
  test(`refuses ${target}`, () => {
    const found = violationLines(() => get(target));
    assert.equal(found.length, 1);
    assert.ok(found[0]?.startsWith(expected), found[0]);
  });
}

test('the body is the resource itself, and an empty one is an empty resource', () => {
  const expected = create(CreateGroupRequestSchema, { parent: 'a', group: { name: 'b' } });
  assert.deepEqual(read('POST', '/iam/v2/groups/a', '{"name":"b"}'), expected);
  const empty = create(CreateGroupRequestSchema, { parent: '', group: {} });
  for (const json of [undefined, '', ' ', '{}', 'null']) assert.deepEqual(read('POST', '/iam/v2/groups', json), empty);
});

test('violations are named relative to the resource', () => {
  assert.match(
    violationLines(() => read('POST', '/iam/v2/identities/a', '{"name":1}')).join(),
    /^name: must be a string/,
  );
});

test('with body * the body is the whole request, but the path overrides it', () => {
  assert.deepEqual(
    read('POST', '/iam/v2/groups/a:requestGroupAccess', '{"groupUid":"b"}'),
    create(RequestGroupAccessRequestSchema, { groupUid: 'a' }),
  );
  assert.deepEqual(
    violationLines(() => read('POST', '/iam/v2/groups/a:requestGroupAccess?group_uid=b')),
    ['group_uid: must be sent in the body'],
  );
});

test('a parameter cannot set a field of the body', () => {
  assert.deepEqual(
    violationLines(() => read('PATCH', '/iam/v2/groups/a?group.name=b&group.uid=c', '{}')),
    ['group.name: is already given by the body', 'group.uid: is already given by the path'],
  );
});

test('a method without body refuses one, unless it is empty', () => {
  assert.deepEqual(read('GET', '/iam/v2/groups/a', '{}'), create(GetGroupRequestSchema, { uid: 'a' }));
  assert.deepEqual(
    violationLines(() => read('GET', '/iam/v2/groups', '{"name":"a"}')),
    ['body: must be empty; send fields in path and query'],
  );
  const deep = `${'['.repeat(100_000)}1${']'.repeat(100_000)}`;
  assert.equal(violationLines(() => read('GET', '/iam/v2/groups', deep)).length, 1);
});

const maskOf = (message: Message) => (message as UpdateIdentityRequest).updateMask?.paths;

test('PATCH without a mask updates the fields of the body, also empty ones', () => {
  const message = read('PATCH', '/iam/v2/groups/a', '{"name":"b","description":"","resourceLimits":{}}');
  const expected = create(UpdateGroupRequestSchema, {
    group: { uid: 'a', name: 'b' },
    updateMask: { paths: ['name', 'description', 'resource_limits'] },
  });
  assert.deepEqual(message, expected);
  assert.deepEqual(
    maskOf(
      read(
        'PATCH',
        '/iam/v2/identities/a',
        '{"name":null,"lastSeenTime":"2026-01-01T00:00:00Z","claimMatch":{"issuer":"","claims":{"a":"b"}}}',
      ),
    ),
    ['name', 'last_seen_time', 'claim_match.issuer', 'claim_match.claims'],
  );
  assert.deepEqual(maskOf(read('PATCH', '/iam/v2/identities/a', '{"claimMatch":{}}')), ['claim_match']);
  assert.deepEqual(maskOf(read('PATCH', '/iam/v2/identities/a')), []);
  assert.deepEqual(maskOf(read('PATCH', '/registry/v2/repos/a', '{"syncConfig":{"source":"x"}}')), [
    'sync_config.source',
  ]);
});

test('PATCH with the whole request as body updates the fields of the resource in it', () => {
  const target = '/iam/v2/identities:updateIdentityMetadata';
  const message = read('PATCH', target, '{"identityMetadata":{"jobTitle":""}}');
  assert.deepEqual((message as UpdateIdentityMetadataRequest).updateMask?.paths, ['job_title']);
  assert.deepEqual(maskOf(read('PATCH', target, '{"identityMetadata":{"jobTitle":""},"updateMask":"company"}')), [
    'company',
  ]);
});

test('a mask in the query overrides the fields of the body', () => {
  assert.deepEqual(maskOf(read('PATCH', '/iam/v2/groups/a?updateMask=name,resourceLimits', '{"description":"x"}')), [
    'name',
    'resource_limits',
  ]);
  assert.deepEqual(maskOf(read('PATCH', '/iam/v2/groups/a?update_mask=*', '{"description":"x"}')), ['*']);
  assert.deepEqual(maskOf(read('PATCH', '/iam/v2/groups/a?update_mask=', '{"description":"x"}')), ['description']);
});

test('POST without body mapping accepts form values like parameters', () => {
  const route = { verb: 'POST', template: '/sts/exchange', body: undefined } as const;
  const method: Method = { ...methodNamed('ListGroups'), routes: [route] };
  const readForm = (query: string, text: string) =>
    requestReader(method, route)({ variables: [], query, body: { type: 'form', text } });
  assert.deepEqual(
    readForm('page_size=3', 'name=a+b&uidp.ids=x&uidp.ids=y'),
    create(ListGroupsRequestSchema, { name: 'a b', pageSize: 3, uidp: { ids: ['x', 'y'] } }),
  );
  assert.deepEqual(
    violationLines(() => readForm('name=a', 'name=b')),
    ['name: may be given only once'],
  );
});

test('POST without body mapping accepts the whole request as JSON too', () => {
  const route = { verb: 'POST', template: '/sts/exchange', body: undefined } as const;
  const method: Method = { ...methodNamed('ListGroups'), routes: [route] };
  const readJson = (text: string) =>
    requestReader(method, route)({ variables: [], query: 'page_size=3', body: { type: 'json', text } });
  assert.deepEqual(
    readJson('{"name":"a b","uidp":{"ids":["x","y"]}}'),
    create(ListGroupsRequestSchema, { name: 'a b', pageSize: 3, uidp: { ids: ['x', 'y'] } }),
  );
  assert.deepEqual(
    violationLines(() => readJson('{"colour":"red"}')),
    ['colour: is not one of the fields of ListGroupsRequest: uidp, name, pageSize, pageToken, orderBy, skip'],
  );
});

test('a route that binds its body to a field that does not exist is refused', () => {
  const method = methodNamed('CreateGroup');
  assert.throws(() => requestReader(method, { verb: 'POST', template: '/x', body: 'nope' }), /CreateGroupRequest.nope/);
});
