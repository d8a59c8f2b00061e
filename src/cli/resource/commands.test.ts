import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { hasOption } from '@bufbuild/protobuf';
import { Command } from 'commander';
import { v2Files } from '../../contract/gen/files.js';
import { resource } from '../../contract/gen/google/api/resource_pb.js';
import {
  type FakeResponse,
  type ReceivedRequest,
  runInProcess,
  startFakeServer,
  temporaryDirectory,
} from '../cli.testing.ts';
import { methodOf } from './command-spec.ts';
import { addResource } from './commands.ts';

const UID = `${'0'.repeat(40)}/${'1'.repeat(16)}`;
const PARENT = '0'.repeat(40);

test('every resource of the contract can have commands', () => {
  const all = v2Files.flatMap((file) => file.messages).filter((message) => hasOption(message, resource));
  assert.ok(all.length >= 15);
  for (const desc of all) {
    const spec = { name: desc.name, resource: desc, columns: { UID: 'uid' } };
    const area = new Command('area');
    addResource(area, spec);
    const verbs = (['list', 'get', 'create', 'update', 'delete'] as const).filter((verb) => methodOf(spec, verb));
    assert.deepEqual(
      area.commands[0]?.commands.map((command) => command.name()),
      verbs,
      desc.name,
    );
  }
});

/** Runs commands against a fake server and records its requests. */
async function startSession(
  t: Parameters<typeof startFakeServer>[0],
  respond: (request: ReceivedRequest) => FakeResponse = () => ({ json: {} }),
) {
  const requests: ReceivedRequest[] = [];
  const server = await startFakeServer(t, (request) => {
    requests.push(request);
    return respond(request);
  });
  const iam = (...args: string[]) => runInProcess(['iam', ...args, '--server', server, '--token', 'x']);
  const sent = (): unknown => JSON.parse(requests.at(-1)?.body ?? '');
  return { iam, requests, sent, server };
}

test('flags set the fields of a create request', async (t) => {
  const { iam, requests, sent } = await startSession(t);
  const flags = [
    '--name',
    'ci',
    '--claim-match.issuer',
    'https://i',
    '--claim-match.claims',
    'a=1',
    '--claim-match.claims',
    'b=2',
  ];
  assert.equal((await iam('identities', 'create', '--parent', PARENT, ...flags)).code, 0);
  assert.equal(requests[0]?.path, `/iam/v2/identities/${PARENT}`);
  assert.deepEqual(sent(), { name: 'ci', claimMatch: { issuer: 'https://i', claims: { a: '1', b: '2' } } });
  await iam('groups', 'create', '--parent', PARENT, '--name', 'g', '--verified', '--kind', 'dev');
  assert.deepEqual(sent(), { name: 'g', verified: true, kind: 'ORG_KIND_DEV' });
});

test('flags override the file and use its spelling of field names', async (t) => {
  const { iam, sent } = await startSession(t);
  const file = join(temporaryDirectory(t), 'body.json');
  writeFileSync(file, '{"name":"old","claim_match":{"issuer":"https://i","subject":"old"}}');
  await iam('identities', 'create', '--parent', PARENT, '--file', file, '--name', 'new', '--subject', 'new');
  assert.deepEqual(sent(), { name: 'new', claim_match: { issuer: 'https://i', subject: 'new' } });

  for (const [text, words] of [
    ['{', /is not JSON/],
    ['[]', /must contain a JSON object/],
  ] as const) {
    writeFileSync(file, text);
    const { code, stderr } = await iam('groups', 'create', '--file', file);
    assert.equal(code, 2);
    assert.match(stderr, words);
  }
});

test('a short flag sets the member of the oneof that other flags select', async (t) => {
  const { iam, sent } = await startSession(t);
  const keys = join(temporaryDirectory(t), 'keys.json');
  writeFileSync(keys, '{"keys":[]}\n');
  const common = ['--parent', PARENT, '--issuer', 'https://i', '--audience', 'a'];
  await iam('identities', 'create', ...common, '--subject', 's');
  assert.deepEqual(sent(), { claimMatch: { issuer: 'https://i', audience: 'a', subject: 's' } });
  await iam('identities', 'create', ...common, '--subject-pattern', 's.*');
  assert.deepEqual(sent(), { claimMatch: { issuer: 'https://i', audience: 'a', subjectPattern: 's.*' } });
  await iam('identities', 'create', ...common, '--audience', 'b', '--subject', 's', '--issuer-keys', `@${keys}`);
  const staticKeys = { issuer: 'https://i', audiences: ['a', 'b'], subject: 's', issuerKeys: '{"keys":[]}' };
  assert.deepEqual(sent(), { staticKeys });
  const twice = await iam('identities', 'create', ...common, '--audience', 'b');
  assert.equal(twice.code, 2);
  assert.match(twice.stderr, /--audience may be given only once/);
  const missing = await iam('identities', 'create', '--parent', PARENT, '--issuer-keys', '@/nonexistent');
  assert.equal(missing.code, 2);
  assert.match(missing.stderr, /--issuer-keys: the file does not exist/);
});

test('an update sends the given fields and their mask', async (t) => {
  const { iam, requests, sent } = await startSession(t, ({ verb }) => ({
    json: verb === 'GET' ? { uid: UID, staticKeys: { issuer: 'https://i' } } : { uid: UID },
  }));
  await iam('groups', 'update', UID, '--description', '');
  assert.equal(requests.at(-1)?.query.get('update_mask'), 'description');
  assert.deepEqual(sent(), { description: '' });

  requests.splice(0);
  await iam('identities', 'update', UID, '--subject', 's', '--name', 'n');
  assert.deepEqual(
    requests.map(({ verb }) => verb),
    ['GET', 'PATCH'],
  );
  assert.deepEqual(sent(), { name: 'n', staticKeys: { subject: 's' } }, 'the current member of the oneof is used');
  assert.equal(requests.at(-1)?.query.get('update_mask'), 'name,static_keys.subject');

  requests.splice(0);
  const nothing = await iam('groups', 'update', UID);
  assert.deepEqual([nothing.code, requests.length], [2, 0]);
});

test('a list reads all pages and prints one response', async (t) => {
  const { iam, requests } = await startSession(t, ({ query }) => {
    const from = Number(query.get('page_token') ?? 0);
    const size = Math.min(Number(query.get('page_size')), 5);
    const groups = Array.from({ length: Math.min(size, 12 - from) }, (_, n) => ({
      uid: `u${from + n}`,
      name: `n${from + n}`,
    }));
    const next = from + groups.length;
    return { json: { groups, ...(next < 12 && { nextPageToken: String(next) }), totalCount: '12', skipped: 0 } };
  });
  const all = JSON.parse((await iam('groups', 'list', '--in-root', '--skip', '0', '-o', 'json')).stdout);
  assert.deepEqual(Object.keys(all), ['groups', 'totalCount', 'skipped']);
  assert.equal(all.groups.length, 12);
  assert.deepEqual(
    requests.map(({ query }) => query.toString()),
    [
      'uidp.in_root=true&skip=0&page_size=200',
      'uidp.in_root=true&page_token=5&page_size=200',
      'uidp.in_root=true&page_token=10&page_size=200',
    ],
  );

  const some = JSON.parse((await iam('groups', 'list', '--limit', '7', '-o', 'json')).stdout);
  assert.deepEqual([some.groups.length, some.nextPageToken, some.totalCount], [7, '7', '12']);

  requests.splice(0);
  const page = await iam('groups', 'list', '--page-size', '3');
  assert.equal(requests.length, 1);
  assert.match(page.stdout, /^UID +NAME +DESCRIPTION +CREATED\nu0 +n0\nu1 +n1\nu2 +n2\n$/);
  assert.equal(page.stderr, 'more results: --page-token 3\n');
});

test('a terminal shows progress, and tables fit its width', async (t) => {
  const server = await startFakeServer(t, ({ query }) => ({
    json: query.has('page_token')
      ? { groups: [{ uid: 'u2', name: 'n', description: 'd'.repeat(100) }], totalCount: '2' }
      : { groups: [{ uid: 'u1' }], nextPageToken: 'p', totalCount: '2' },
  }));
  const args = ['iam', 'groups', 'list', '--server', server, '--token', 'x'];
  assert.equal((await runInProcess(args)).stderr, '');
  const { stdout, stderr } = await runInProcess(args, {}, { columns: 60 });
  assert.match(stderr, /1 of 2…/);
  assert.ok(stdout.split('\n').every((line) => line.length <= 60));
});

test('a role can be given by its name', async (t) => {
  const other = '9'.repeat(40);
  const roles: Record<string, string[]> = {
    viewer: [other],
    twin: [`${PARENT}/${'a'.repeat(16)}`, `${PARENT}/${'b'.repeat(16)}`],
    elsewhere: [`${other}/${'a'.repeat(16)}`, `${PARENT}/${'c'.repeat(16)}`],
  };
  const { iam, sent } = await startSession(t, ({ verb, query }) => ({
    json: verb === 'GET' ? { roles: (roles[query.get('name') ?? ''] ?? []).map((uid) => ({ uid })) } : { uid: UID },
  }));
  const bind = (role: string) => iam('role-bindings', 'create', '--parent', PARENT, '--identity', UID, '--role', role);
  assert.equal((await bind('viewer')).code, 0);
  assert.deepEqual(sent(), { identityUid: UID, roleUid: other });
  assert.equal((await bind('elsewhere')).code, 0);
  assert.deepEqual(sent(), { identityUid: UID, roleUid: `${PARENT}/${'c'.repeat(16)}` });

  const ambiguous = await bind('twin');
  assert.equal(ambiguous.code, 2);
  assert.equal(
    ambiguous.stderr,
    `wharf: 2 roles are named "twin": give the uid of one of them:\n  ${roles.twin?.join('\n  ')}\n`,
  );
  const unknown = await bind('unknown');
  assert.equal(unknown.code, 5);
  assert.match(unknown.stderr, /no role named "unknown"/);
});

test('empty values are refused, as from an unset variable of a script', async (t) => {
  const { iam, requests } = await startSession(t);
  for (const args of [
    ['groups', 'list', '--descendants-of', ''],
    ['groups', 'list', '--ids', ''],
    ['groups', 'create', '--parent', '', '--name', 'my-group'],
    ['groups', 'delete', ''],
  ]) {
    const { code, stderr } = await iam(...args);
    assert.equal(code, 2, args.join(' '));
    assert.match(stderr, /is empty/);
  }
  assert.deepEqual(requests, []);
});

test('a deletion prints the uid, except as JSON', async (t) => {
  const { iam } = await startSession(t, () => ({ status: 200, text: '' }));
  assert.deepEqual(await iam('groups', 'delete', UID), { code: 0, stdout: `deleted ${UID}\n`, stderr: '' });
  assert.deepEqual(await iam('groups', 'delete', UID, '-o', 'json'), { code: 0, stdout: '', stderr: '' });
});
