import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it, test } from 'node:test';
import { decodeProtectedHeader } from 'jose';
import { databases } from '../../../test/support/databases.ts';
import { startServerOn, startTestServer, type TestServer } from '../../../test/support/server.ts';
import { runInProcess, temporaryDirectory, wharf } from '../cli.testing.ts';

interface PrintedKey {
  readonly kid: string;
  readonly state: string;
  readonly activates: string;
  readonly retires: string;
  readonly expires: string;
}

for (const database of databases) {
  describe(`wharf keys beside a running server on ${database.name}`, () => {
    let server: TestServer;
    let env: Record<string, string>;

    before(async () => {
      server = await startTestServer(database);
      const { dataDir, databaseUrl } = server.dataLocation;
      env = { WHARF_DATA: dataDir, ...(databaseUrl !== undefined && { WHARF_DATABASE_URL: databaseUrl }) };
    });
    after(() => server.remove());

    const keys = async (...args: string[]): Promise<PrintedKey[]> => {
      const { code, stdout, stderr } = await runInProcess(['keys', ...args, '-o', 'json'], env);
      assert.equal(code, 0, stderr);
      return JSON.parse(stdout);
    };
    const states = (keyList: readonly PrintedKey[]) => keyList.map(({ state }) => state);

    const newToken = async (): Promise<{ token: string; kid: string }> => {
      const headers = { authorization: `Bearer ${server.token}` };
      const response = await fetch(`${server.url}/sts/exchange?aud=${server.url}`, { headers });
      const { token } = (await response.json()) as { token: string };
      return { token, kid: decodeProtectedHeader(token).kid ?? assert.fail() };
    };
    const status = async (token: string): Promise<number> =>
      (await fetch(`${server.url}/auth/v1/ok`, { headers: { authorization: `Bearer ${token}` } })).status;
    const published = async (): Promise<string[]> => {
      const response = await fetch(`${server.url}/.well-known/jwks.json`);
      return ((await response.json()) as { keys: { kid: string }[] }).keys.map(({ kid }) => kid);
    };

    it('lists the key that the first start created', async () => {
      const [key, ...more] = await keys('list');
      assert.deepEqual(more, []);
      assert.deepEqual([key?.state, key?.retires, key?.expires], ['current', '', '']);
      assert.equal((await newToken()).kid, key?.kid);
      const { stdout } = await runInProcess(['keys', 'list'], env);
      assert.match(stdout, /^KID +STATE +ACTIVATES +RETIRES +EXPIRES\n[0-9a-f]{32} +current +\d{4}-/);
    });

    it('rotates with an overlap: the new key is published, the old one still signs', async () => {
      const { kid: old } = await newToken();
      const [next, current] = await keys('rotate');
      assert.deepEqual([next?.state, current?.state, current?.kid], ['next', 'current', old]);
      assert.equal(next?.activates, current?.retires);
      assert.deepEqual(await published(), [next?.kid, old]);
      assert.equal((await newToken()).kid, old);
    });

    it('rotates immediately, and tokens of the old key remain valid', async () => {
      const { token, kid: old } = await newToken();
      const keyList = await keys('rotate', '--now');
      assert.deepEqual(states(keyList).sort(), ['current', 'retired', 'retired']);
      const fresh = await newToken();
      assert.equal(fresh.kid, keyList.find(({ state }) => state === 'current')?.kid);
      assert.notEqual(fresh.kid, old);
      assert.deepEqual([await status(token), await status(fresh.token)], [200, 200]);
    });

    it('revokes from another process: the next request is refused', async () => {
      const { token, kid } = await newToken();
      assert.equal(await status(token), 200);
      const { code, stderr } = await wharf(['keys', 'revoke', kid], env);
      assert.equal(code, 0, stderr);
      assert.equal(await status(token), 401);
      assert.ok(!(await published()).includes(kid));
      assert.equal(await status((await newToken()).token), 200);
    });

    it('rotates the master key while the server runs, which goes on and can be restarted', async () => {
      const subscribe = async (): Promise<number> => {
        const response = await fetch(`${server.url}/events/v2/subscriptions/${server.organization}`, {
          method: 'POST',
          headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
          body: JSON.stringify({ sink: 'https://sink.example.com/' }),
        });
        return response.status;
      };
      assert.equal(await subscribe(), 200);
      const former = readFileSync(join(server.dataLocation.dataDir, 'master.key'), 'utf8');
      const { code, stdout, stderr } = await wharf(['keys', 'rotate-master'], env);
      assert.equal(code, 0, stderr);
      assert.match(
        stdout,
        /^encrypted \d+ secrets again: the master key is [0-9a-f]{16}\nolder backups need the former key: it is in .*\n$/,
      );
      assert.notEqual(readFileSync(join(server.dataLocation.dataDir, 'master.key'), 'utf8'), former);
      assert.equal(await subscribe(), 200);
      // The server must open the key that this command has sealed with the new master key.
      const rotated = await keys('rotate', '--now');
      const fresh = await newToken();
      assert.equal(fresh.kid, rotated.find(({ state }) => state === 'current')?.kid);
      const restarted = await startServerOn(server.dataLocation);
      await restarted.stop();
    });

    it('names an unknown key in its error', async () => {
      const { code, stdout, stderr } = await runInProcess(['keys', 'revoke', 'f'.repeat(32)], env);
      assert.deepEqual([code, stdout], [5, '']);
      assert.match(stderr, /^wharf: there is no key f{32}: 'wharf keys list' shows the keys\n$/);
    });

    it('needs the master key to create a key, but not to list keys', async () => {
      const other = { ...env, WHARF_MASTER_KEY: 'f'.repeat(64) };
      const { code, stderr } = await runInProcess(['keys', 'rotate'], other);
      assert.equal(code, 1);
      assert.match(
        stderr,
        /^wharf: the secrets in the database are encrypted with another master key \(key id \w{16}\): [^\n]*\n$/,
      );
      assert.equal((await runInProcess(['keys', 'list'], other)).code, 0);
    });
  });
}

test('no database is created in a directory without one', async (t) => {
  const data = temporaryDirectory(t);
  writeFileSync(join(data, 'other.txt'), '');
  for (const args of [['list'], ['rotate'], ['revoke', 'x']]) {
    const { code, stderr } = await runInProcess(['keys', ...args, '--data', data]);
    assert.equal(code, 1);
    assert.match(stderr, /^wharf: no database in .*: start the server once, or give its data directory with --data\n$/);
  }
  assert.ok(!existsSync(join(data, 'wharfinger.db')));
});
