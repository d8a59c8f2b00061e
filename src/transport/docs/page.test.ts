import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { Script } from 'node:vm';
import { files, methodTable } from '../../contract/method-table.ts';
import { openapi } from '../openapi/document.ts';
import { assemblePage } from './page.ts';

const { html, contentSecurityPolicy } = assemblePage();

function inner(tag: 'style' | 'script'): string {
  const found = new RegExp(`<${tag}[^>]*>([^]*?)</${tag}>`).exec(html);
  assert.ok(found?.[1], `no ${tag} in the page`);
  return found[1];
}

test('the page contains its style and script, and the policy has the hashes of both', () => {
  for (const tag of ['style', 'script'] as const) {
    const hash = createHash('sha256').update(inner(tag)).digest('base64');
    assert.ok(contentSecurityPolicy.includes(`${tag}-src 'sha256-${hash}'`), tag);
    assert.equal(html.split(`</${tag}>`).length, 2, `one ${tag}`);
  }
});

test('the scripts together are one valid program', () => {
  assert.doesNotThrow(() => new Script(inner('script')));
  assert.doesNotMatch(inner('script'), /^(import|export)\b/m);
});

test('the page loads nothing from other servers, and no data becomes markup', () => {
  const addresses = html.match(/\b(?:https?:)?\/\/[a-z][\w.-]*\.[a-z]+[^\s'"`)]*/g) ?? [];
  assert.deepEqual(addresses, ['http://www.w3.org/2000/svg'], 'a namespace, which is not fetched');
  assert.doesNotMatch(inner('style'), /@import|url\(/);
  assert.doesNotMatch(inner('script'), /innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|Storage|cookie/);
  assert.doesNotMatch(html.replace(inner('script'), ''), /\s(?:on\w+|style)=/, 'the policy would block it');
});

/** The functions of model.js. */
interface Model {
  buildCatalog(
    doc: unknown,
  ): { title: string; services: { id: string; title: string; operations: PageOperation[] }[] }[];
  pathPieces(operation: PageOperation): unknown[];
  matches(operation: PageOperation, service: { title: string }, filter: string): boolean;
  requestTarget(operation: PageOperation, values: Record<string, string>): string;
  curlCommand(server: string, operation: PageOperation, values: Record<string, string>, body?: string): string;
  resolve(doc: unknown, schema: object): { required?: string[]; properties: object };
  typeText(doc: unknown, schema: object): string;
}

interface PageOperation {
  readonly id: string;
  readonly title: string;
  readonly access: string;
  readonly event?: string;
  readonly description: string;
  readonly body?: { readonly schema: object };
}

const model: Model = await import(new URL('model.js', import.meta.url).href);
const methods = methodTable(files);
const doc = openapi(methods, { serverUrl: 'https://wharf.example.com', version: '1.2.3' });
const domains = model.buildCatalog(doc);
const operationsOnPage = domains.flatMap(({ services }) => services.flatMap(({ operations }) => operations));

function find(id: string): PageOperation {
  const operation = operationsOnPage.find((candidate) => candidate.id === id);
  assert.ok(operation, id);
  return operation;
}

test('the page shows every operation once, under its domain', () => {
  const routes = methods.flatMap((method) => method.routes).length;
  assert.equal(operationsOnPage.length, routes);
  assert.equal(new Set(operationsOnPage).size, routes);
  assert.equal(domains[0]?.title, 'IAM');
  const create = find('GroupsService_CreateGroup');
  assert.equal(create.title, 'Create group');
  assert.match(create.access, /^Needs `groups.create`/);
  assert.match(create.event ?? '', /^Emits /);
  assert.doesNotMatch(create.description, /Needs|Emits/);
  assert.deepEqual(model.pathPieces(create), ['/iam/v2/groups/', { variable: 'parent' }]);
});

test('requests keep slashes in uids, repeat lists and omit empty values', () => {
  const get = find('GroupsService_GetGroup');
  assert.equal(model.requestTarget(get, { uid: 'ab/c d' }), '/iam/v2/groups/ab/c%20d');
  const size = find('ImagesService_GetSize');
  assert.equal(
    model.requestTarget(size, { repo_uid: 'ab/cd', digest: 'sha256:e/f', architecture: '' }),
    '/registry/v2/repos/ab/cd/digests/sha256%3Ae%2Ff/size',
  );
  assert.equal(model.requestTarget(find('GroupsService_CreateGroup'), {}), '/iam/v2/groups');
  assert.equal(
    model.requestTarget(find('GroupsService_ListGroups'), { 'uidp.ids': 'a, b', order_by: 'name desc' }),
    '/iam/v2/groups?uidp.ids=a&uidp.ids=b&order_by=name+desc',
  );
});

test('curl commands are quoted, and never contain the token', () => {
  assert.equal(model.curlCommand('http://x', find('PingService_Ping'), {}), "curl 'http://x/ping/v2/ping'");
  assert.equal(
    model.curlCommand('http://x', find('GroupsService_UpdateGroup'), { uid: 'ab' }, `{"description":"it's"}`),
    [
      "curl -X PATCH 'http://x/iam/v2/groups/ab' \\",
      '  -H "Authorization: Bearer $TOKEN" \\',
      "  -H 'Content-Type: application/json' \\",
      `  -d '{"description":"it'\\''s"}'`,
    ].join('\n'),
  );
  assert.match(model.curlCommand('http://x', find('GroupsService_GetGroup'), {}), /groups\/[0-9a-f]{40}/);
  assert.match(
    model.curlCommand('http://x', find('ArtifactsService_ListArtifacts'), {}),
    /\?ecosystems=ECOSYSTEM_JAVA'/,
  );
});

test('the filter searches every word in names, paths and capabilities', () => {
  const groups = { title: 'Groups' };
  const remove = find('GroupsService_DeleteGroup');
  for (const filter of ['', 'delete', 'GROUP iam', 'groups.delete', '/iam/v2/groups/']) {
    assert.ok(model.matches(remove, groups, filter), filter);
  }
  assert.ok(!model.matches(remove, groups, 'delete repo'));
});

test('schemas are resolved with the required fields of their parts', () => {
  const invite = model.resolve(doc, find('GroupInvitesService_CreateGroupInvite').body?.schema ?? {});
  assert.deepEqual(invite.required?.toSorted(), ['roleUid', 'ttl']);
  assert.ok('ttl' in invite.properties);
  assert.equal(
    model.typeText(doc, { type: 'array', items: { $ref: '#/components/schemas/iam.v2.Group' } }),
    'list of Group',
  );
  assert.equal(model.typeText(doc, { type: 'string', format: 'date-time' }), 'timestamp');
});
