import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { runInProcess, wharf } from '../../src/cli/cli.testing.ts';
import { ExitCode } from '../../src/cli/exit-codes.ts';
import type { MasterKeyLoss } from '../../src/identity/reset-master-key.ts';
import { builtinRoleUid } from '../support/callers.ts';
import { type DataLocation, databases } from '../support/databases.ts';
import { pollUntil } from '../support/poll-until.ts';
import { startServerOn, type TestServer } from '../support/server.ts';
import { createDeliveryVerifier, startSink, type TestSink } from '../support/sink.ts';
import { subscribe } from '../support/subscribe.ts';

const ENV = { WHARF_ALLOW_INSECURE_SINKS: 'true', WHARF_NEW_SINK_INTERVAL: '0s' };

interface Answer {
  readonly status: number;
  readonly uid?: string;
  readonly token?: string;
  readonly name?: string;
  readonly state?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly secret?: string;
}

for (const database of databases) {
  describe(`a lost master key on ${database.name}`, () => {
    let location: DataLocation;
    let sink: TestSink;
    let server: TestServer;
    let env: Record<string, string>;
    let subscription: string;
    let provider: string;
    let accessToken: string;
    const keyFile = () => join(location.dataDir, 'master.key');
    const start = (extra: Record<string, string> = {}) => startServerOn(location, { env: { ...ENV, ...extra } });
    const reset = (...args: string[]) => runInProcess(['keys', 'reset-master', ...args], env);

    async function call(verb: string, path: string, body?: unknown, token = server.token): Promise<Answer> {
      const response = await fetch(`${server.url}${path}`, {
        method: verb,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const answer = (await response.json()) as Omit<Answer, 'status'>;
      return { ...answer, status: response.status };
    }

    before(async () => {
      location = await database.createDataLocation();
      const { dataDir, databaseUrl } = location;
      env = { WHARF_DATA: dataDir, ...(databaseUrl !== undefined && { WHARF_DATABASE_URL: databaseUrl }) };
      sink = await startSink();
      server = await start();
      subscription = (await subscribe('REST', server, server.organization, sink.url)).uid;
      const oidc = { issuer: 'https://login.example.com', clientId: 'wharf', clientSecret: 'the client secret' };
      const body = { name: 'okta', defaultRole: builtinRoleUid('viewer'), oidc };
      const created = await call('POST', `/iam/v2/identityProviders/${server.organization}`, body);
      assert.equal(created.status, 200, JSON.stringify(created));
      provider = created.uid ?? '';
      accessToken = (await call('GET', `/sts/exchange?aud=${server.url}`)).token ?? '';
      assert.equal(
        (await call('POST', `/iam/v2/groups/${server.organization}`, { name: 'kept' }, accessToken)).status,
        200,
      );
      await pollUntil(
        async () => sink.received.length,
        (count) => count >= 2,
      );
      await server.stop();
    });
    after(async () => {
      await server.stop();
      await sink.close();
      await location.remove();
    });

    test('a start without it is refused, creates no other, and names the command', async () => {
      const key = readFileSync(keyFile());
      rmSync(keyFile());
      const { code, stderr } = await wharf(['serve'], { ...env, WHARF_LISTEN: '127.0.0.1:0' });
      assert.equal(code, 1);
      assert.match(
        stderr,
        /^wharf: cannot start: the master key is missing: there is no .*master\.key and WHARF_MASTER_KEY is not set, but the database has secrets that are encrypted with it \(key id \w{16}\)\. Restore it from a backup\. If it is lost, 'wharf keys reset-master' lists/m,
      );
      assert.ok(!existsSync(keyFile()));
      const rightKey = { ...env, WHARF_MASTER_KEY: key.toString().trim() };
      assert.match((await runInProcess(['keys', 'reset-master', '--yes'], rightKey)).stderr, /no secret is lost/);
    });

    test('the command lists by name what is lost, and changes nothing without --yes', async () => {
      for (const file of [undefined, 'a damaged file', randomBytes(32).toString('base64')]) {
        if (file !== undefined) writeFileSync(keyFile(), file, { mode: 0o600 });
        const { code, stdout, stderr } = await reset();
        assert.equal(code, ExitCode.precondition, stderr);
        assert.match(stdout, /^1 signing keys are lost: .*\n2 other secrets are lost and must be set again:\n/);
        assert.ok(stdout.includes(sink.url) && stdout.includes('okta'), stdout);
        assert.match(stderr, /^wharf: nothing was changed: restore the key from a backup, or stop the servers and run/);
        assert.equal(existsSync(keyFile()), file !== undefined);
      }
      const { secrets } = JSON.parse((await reset('-o', 'json')).stdout) as MasterKeyLoss;
      assert.deepEqual(
        secrets.map(({ kind, uid, name, secret }) => [kind, uid, name, secret]),
        [
          ['subscription', subscription, sink.url, 'webhook secret'],
          ['identity provider', provider, 'okta', 'client secret'],
        ],
      );
    });

    test('after the reset the server starts with everything else, and the secrets can be set again', async () => {
      const { code, stdout, stderr } = await wharf(['keys', 'reset-master', '--yes'], env);
      assert.equal(code, 0, stderr);
      assert.match(stdout, /2 other secrets are lost/);
      assert.match(stderr, /"message":"the master key was reset on the command line"/);
      assert.match(stderr, new RegExp(`"lost":\\["subscription ${subscription}","identity provider ${provider}"\\]`));
      assert.equal(readdirSync(location.dataDir).filter((name) => name.startsWith('master.key.unused-')).length, 1);
      assert.match((await reset('--yes')).stderr, /the master key fits the database, so no secret is lost/);

      server = await start();
      const groups = await call('GET', '/iam/v2/groups');
      assert.match(JSON.stringify(groups), /"name":"kept"/);
      assert.equal((await call('GET', '/iam/v2/groups', undefined, accessToken)).status, 401);
      assert.equal((await call('GET', `/sts/exchange?aud=${server.url}`)).status, 200);
      assert.equal((await call('GET', `/iam/v2/identityProviders/${provider}`)).name, 'okta');
      const path = `/wharfinger/v1/sinks/${subscription}`;
      const { state, reason } = await call('GET', path);
      assert.equal(state, 'SINK_STATE_DISABLED');
      assert.equal(reason, 'its secret was lost with the master key: rotate the secret');
      const refused = await call('POST', `${path}:enable`, {});
      assert.deepEqual([refused.status, /rotate the secret, then enable it/.test(refused.message ?? '')], [400, true]);

      const { secret = '' } = await call('POST', `${path}:rotateSecret`, {});
      assert.equal((await call('POST', `${path}:enable`, {})).status, 200);
      const before = sink.received.length;
      await call('POST', `/iam/v2/groups/${server.organization}`, { name: 'announced' });
      await pollUntil(
        async () => sink.received.length,
        (count) => count > before,
      );
      const verify = createDeliveryVerifier({ issuer: server.url, subscription, secret });
      await verify(sink.received.at(-1) ?? assert.fail());
      await server.stop();
    });

    test('a wrong WHARF_MASTER_KEY is refused, and can be made the new one', async () => {
      const wrong = { WHARF_MASTER_KEY: randomBytes(32).toString('hex') };
      await assert.rejects(start(wrong), { message: /encrypted with another master key .*'wharf keys reset-master'/ });
      const { code, stderr } = await runInProcess(['keys', 'reset-master', '--yes'], { ...env, ...wrong });
      assert.equal(code, 0, stderr);
      await (await start(wrong)).stop();
      await assert.rejects(start(), { message: /encrypted with another master key/ });
      rmSync(keyFile());
      server = await start(wrong);
      assert.equal((await call('GET', `/sts/exchange?aud=${server.url}`)).status, 200);
    });
  });
}
