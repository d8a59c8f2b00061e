import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { exportJWK, generateKeyPair } from 'jose';
import { type Result, runInProcess, wharf } from '../../src/cli/cli.testing.ts';
import { builtinRoleUid, callerWithoutRole, callerWithRole } from '../support/callers.ts';
import { databases } from '../support/databases.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

type Json = Record<string, unknown> & { readonly uid: string; readonly name: string };

/** Returns an address at which no server listens. */
async function vacantAddress(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return `http://127.0.0.1:${port}`;
}

describe('commands against a server', () => {
  let server: TestServer;
  let org: string;
  let scratch: string;

  before(async () => {
    const [database] = databases;
    server = await startTestServer(database ?? assert.fail());
    org = server.organization;
    scratch = mkdtempSync(join(tmpdir(), 'wharf-cli-'));
  });
  after(async () => {
    await server.remove();
    rmSync(scratch, { recursive: true, force: true });
  });

  const env = () => ({ WHARF_SERVER: server.url, WHARF_DATA: server.dataLocation.dataDir, XDG_CONFIG_HOME: scratch });
  const iam = (...args: string[]): Promise<Result> => runInProcess(['iam', ...args], env());
  const json = async (...args: string[]): Promise<Json> => {
    const { code, stdout, stderr } = await iam(...args, '-o', 'json');
    assert.deepEqual([code, stderr], [0, ''], args.join(' '));
    return JSON.parse(stdout);
  };
  const fails = async (code: number, pattern: RegExp, ...args: string[]): Promise<void> => {
    const result = await iam(...args);
    assert.deepEqual([result.code, result.stdout], [code, ''], `${args.join(' ')}: ${result.stderr}`);
    assert.match(result.stderr, pattern);
  };

  test('groups can be created, read, updated, listed and deleted', async () => {
    const group = await json('groups', 'create', '--parent', org, '--name', 'cli life', '--description', 'first');
    assert.deepEqual(await json('groups', 'get', group.uid), group);
    const changed = await json('groups', 'update', group.uid, '--name', 'cli renamed');
    assert.deepEqual([changed.name, changed.description], ['cli renamed', 'first']);
    const cleared = await json('groups', 'update', group.uid, '--description', '');
    assert.deepEqual([cleared.name, cleared.description], ['cli renamed', undefined]);
    const found = (await json('groups', 'list', '--children-of', org, '--name', 'cli renamed')) as unknown as {
      groups: Json[];
    };
    assert.deepEqual(found.groups, [cleared]);
    assert.equal((await iam('groups', 'delete', group.uid)).stdout, `deleted ${group.uid}\n`);
    await fails(5, /^wharf: Not found: group /, 'groups', 'get', group.uid);
  });

  test('the output of get can be sent back with --file', async () => {
    const group = await json('groups', 'create', '--parent', org, '--name', 'cli copy');
    const file = join(scratch, 'group.json');
    writeFileSync(file, JSON.stringify(group));
    const changed = await json('groups', 'update', group.uid, '--file', file, '--description', 'copied');
    const { updateTime: _before, ...rest } = group;
    const { updateTime: _after, ...now } = changed;
    assert.deepEqual(now, { ...rest, description: 'copied' });
  });

  test('list follows all pages, in the requested order', async () => {
    const { uid } = await json('groups', 'create', '--parent', org, '--name', 'cli many');
    const names = Array.from({ length: 7 }, (_, n) => `member ${n}`);
    for (const name of names) await json('groups', 'create', '--parent', uid, '--name', name);
    const list = async (...flags: string[]) =>
      (await json('groups', 'list', '--descendants-of', uid, '--order-by', 'name desc', ...flags)) as unknown as {
        groups: Json[];
        totalCount: string;
        nextPageToken?: string;
      };
    const all = await list();
    assert.deepEqual(all.groups.map(({ name }) => name).reverse(), names);
    assert.deepEqual([all.totalCount, all.nextPageToken], ['7', undefined]);

    const start = await list('--limit', '3');
    assert.equal(start.groups.length, 3);
    const rest = await list('--page-token', start.nextPageToken ?? '');
    assert.deepEqual([...start.groups, ...rest.groups], all.groups);

    const { stdout } = await iam('groups', 'list', '--children-of', uid, '--skip', '5');
    const [header, ...rows] = stdout.trimEnd().split('\n');
    assert.match(header ?? '', /^UID {2,}NAME +DESCRIPTION +CREATED$/);
    assert.equal(rows.length, 2);
    assert.match(rows[0] ?? '', /^[0-9a-f/]+ {2}member \d +\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  });

  test('identities are created with claims or keys, and short flags resolve to their fields', async () => {
    const claims = ['--issuer', 'https://issuer.example.com', '--subject', 'robot', '--audience', 'wharf'];
    const robot = await json('identities', 'create', '--parent', org, '--name', 'robot', ...claims);
    assert.deepEqual(robot.claimMatch, { issuer: 'https://issuer.example.com', subject: 'robot', audience: 'wharf' });
    const patterned = await json('identities', 'update', robot.uid, '--subject-pattern', 'robot-[0-9]+');
    assert.deepEqual(patterned.claimMatch, {
      issuer: 'https://issuer.example.com',
      subjectPattern: 'robot-[0-9]+',
      audience: 'wharf',
    });

    const { publicKey } = await generateKeyPair('ES256', { extractable: true });
    const keys = join(scratch, 'keys.json');
    writeFileSync(keys, JSON.stringify({ keys: [await exportJWK(publicKey)] }));
    const withKeys = await json(
      'identities',
      'create',
      '--parent',
      org,
      '--name',
      'held',
      ...claims,
      '--issuer-keys',
      `@${keys}`,
    );
    const { subject, audiences } = withKeys.staticKeys as { subject: string; audiences: string[] };
    assert.deepEqual([subject, audiences], ['robot', ['wharf']]);
    const moved = await json('identities', 'update', withKeys.uid, '--subject', 'other');
    assert.equal((moved.staticKeys as { subject: string }).subject, 'other');

    const { stdout } = await iam('identities', 'list', '--relationship-type', 'static', '--name', 'held');
    assert.match(
      stdout,
      /UID +NAME +ISSUER +SUBJECT +LAST SEEN\n\S+ {2}held {2}https:\/\/issuer.example.com {2}other\n/,
    );
    for (const { uid } of [robot, withKeys]) assert.equal((await iam('identities', 'delete', uid)).code, 0);
  });

  test('role bindings take a role by its name', async () => {
    const group = await json('groups', 'create', '--parent', org, '--name', 'cli bound');
    const flags = ['--name', 'auditor', '--capabilities', 'groups.list', '--capabilities', 'roles.list'];
    const role = await json('roles', 'create', '--parent', group.uid, ...flags);
    assert.deepEqual(role.capabilities, ['CAP_IAM_GROUPS_LIST', 'CAP_IAM_ROLES_LIST']);
    const { uid: identity } = await callerWithoutRole(server, org);
    const bind = ['role-bindings', 'create', '--parent', group.uid, '--identity', identity];
    const viewer = await json(...bind, '--role', 'viewer');
    assert.equal(viewer.roleUid, builtinRoleUid('viewer'));
    assert.equal((await json(...bind, '--role', 'auditor')).roleUid, role.uid);
    const changed = await json('role-bindings', 'update', viewer.uid, '--role', 'editor');
    assert.equal(changed.roleUid, builtinRoleUid('editor'));

    const { stdout } = await iam('role-bindings', 'list', '--identity', identity, '--order-by', 'create_time');
    assert.match(stdout, /UID +IDENTITY +ROLE +GROUP +CREATED\n.* editor +cli bound .*\n.* auditor +cli bound /);

    await fails(
      5,
      /no role named "auditor"/,
      'role-bindings',
      'create',
      '--parent',
      org,
      '--identity',
      identity,
      '--role',
      'auditor',
    );
    const { uid: twin } = await json('roles', 'create', '--parent', group.uid, '--name', 'auditor');
    await fails(2, new RegExp(`2 roles are named "auditor".*\n(.*\n)*  ${twin}\n`), ...bind, '--role', 'auditor');
    await fails(7, /RESOURCE_IN_USE/, 'roles', 'delete', role.uid);
    await fails(7, /RESOURCE_NOT_EMPTY: cannot delete group with child/, 'groups', 'delete', group.uid);
  });

  test('identity providers and invites can be created, listed and deleted', async () => {
    const secret = join(scratch, 'secret');
    writeFileSync(secret, 'hunter2\n');
    const flags = [
      '--oidc.issuer',
      'https://idp.example.com',
      '--oidc.client-id',
      'wharf',
      '--oidc.client-secret',
      `@${secret}`,
    ];
    const provider = await json(
      'identity-providers',
      'create',
      '--parent',
      org,
      '--name',
      'our idp',
      '--default-role',
      'viewer',
      ...flags,
    );
    assert.equal(provider.defaultRole, builtinRoleUid('viewer'));
    const changed = await json('identity-providers', 'update', provider.uid, '--default-role', 'editor');
    assert.equal(changed.defaultRole, builtinRoleUid('editor'));
    assert.match((await iam('identity-providers', 'list')).stdout, /our idp +https:\/\/idp\.example\.com +wharf/);
    assert.equal((await iam('identity-providers', 'delete', provider.uid)).code, 0);

    const invite = await json('invites', 'create', '--parent', org, '--role', 'viewer', '--ttl', '2d', '--single-use');
    assert.ok(invite.code);
    const lifetime = Date.parse(String(invite.expirationTime)) - Date.parse(String(invite.createTime));
    assert.equal(lifetime, 2 * 86_400_000);
    assert.match((await iam('invites', 'list')).stdout, /UID +ROLE +EMAIL +SINGLE USE +EXPIRES\n\S+ +viewer +true /);
    assert.equal((await iam('invites', 'delete', invite.uid)).code, 0);
  });

  test('each kind of error has an exit code and a message', async () => {
    const violation =
      /^wharf: Invalid argument: name: .*\n {2}name: must have 3 to 63 characters\n {2}request id: \S+\n$/;
    await fails(8, violation, 'groups', 'create', '--parent', org, '--name', 'x');
    await fails(8, /uid: must be a uid/, 'groups', 'get', 'nonsense');
    await json('groups', 'create', '--parent', org, '--name', 'cli taken');
    await fails(6, /^wharf: Already exists/, 'groups', 'create', '--parent', org, '--name', 'cli taken');
    await fails(3, /^wharf: Unauthenticated/, 'groups', 'list', '--token', 'nonsense');
    const viewer = await (await callerWithRole(server, 'viewer', org)).token();
    const refusal = new RegExp(`needs groups.delete .*\n {2}to see why: wharf auth explain groups.delete ${org}\n`);
    await fails(4, refusal, 'groups', 'delete', org, '--token', viewer);
    const vacant = await vacantAddress();
    await fails(9, new RegExp(`^wharf: nothing listens at ${vacant}:`), 'groups', 'list', '--server', vacant);
    await fails(2, /nothing to change/, 'groups', 'update', org);
  });

  test('commands act as the identity of the login until logout', async () => {
    const auth = (...args: string[]): Promise<Result> => runInProcess(['auth', ...args], env());
    const subject = async (): Promise<unknown> => JSON.parse((await auth('status', '-o', 'json')).stdout).subject;
    const owner = await subject();
    const caller = await callerWithRole(server, 'viewer', org);
    const idToken = join(scratch, 'id-token');
    writeFileSync(idToken, await caller.token());

    const login = await auth('login', '--id-token', `@${idToken}`, '--identity', caller.uid);
    assert.equal(login.code, 0, login.stderr);
    assert.match(login.stdout, new RegExp(`identity  ${caller.uid}\n`));
    assert.match(login.stdout, new RegExp(`\n${org} +my-org +viewer\n`));
    assert.equal(await subject(), caller.uid);
    await fails(4, /needs groups.create/, 'groups', 'create', '--parent', org, '--name', 'cli denied');

    const denied = await auth('explain', 'groups.create', org);
    assert.match(denied.stdout, /^no: .*\n\n.*owner/);
    const allowed = await auth('explain', 'groups.list', org);
    assert.match(allowed.stdout, /^yes: .*\n\nBINDING +ROLE +GROUP\n.* viewer /);

    const narrow = (await auth('token', '--cap', 'roles.list')).stdout.trim();
    assert.equal((await iam('roles', 'list', '--token', narrow)).code, 0);
    await fails(4, /needs groups.list/, 'groups', 'get', org, '--token', narrow);

    assert.equal((await auth('logout')).code, 0);
    assert.equal(await subject(), owner);
  });

  test('an expired token is refreshed, also by concurrent commands', async () => {
    const caller = await callerWithRole(server, 'viewer', org);
    await runInProcess(['auth', 'login', '--id-token', await caller.token()], env());
    const path = join(scratch, 'wharf/credentials.json');
    const read = () => JSON.parse(readFileSync(path, 'utf8')).logins[server.url];
    const before = read();
    const expired = { ...before, expires: '2026-01-01T00:00:00.000Z' };
    writeFileSync(path, JSON.stringify({ logins: { [server.url]: expired } }));

    const results = await Promise.all(Array.from({ length: 3 }, () => wharf(['iam', 'groups', 'get', org], env())));
    for (const { code, stderr } of results) assert.deepEqual([code, stderr], [0, '']);
    const renewed = read();
    assert.notEqual(renewed.token, before.token);
    assert.notEqual(renewed.refreshToken, before.refreshToken);
    assert.ok(Date.parse(renewed.expires) > Date.now());
    await runInProcess(['auth', 'logout'], env());
  });

  test('the program sets exit codes and reads a body from standard input', async () => {
    const result = await wharf(['iam', 'groups', 'get', `${org}/${'0'.repeat(16)}`], env());
    assert.deepEqual([result.code, result.stdout], [5, '']);
    assert.match(result.stderr, /^wharf: Not found: group .*\n {2}request id: \S+\n$/);
    const created = await wharf(
      ['iam', 'groups', 'create', '--parent', org, '--file', '-', '-o', 'json'],
      env(),
      '{"name":"from stdin"}',
    );
    assert.equal(created.code, 0, created.stderr);
    assert.equal(JSON.parse(created.stdout).name, 'from stdin');
  });
});
