import assert from 'node:assert/strict';
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it, test } from 'node:test';
import { type Database, databases } from '../../../test/support/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/server.ts';
import { disable } from '../../domains/iam/disabled.ts';
import { groups } from '../../domains/iam/groups/groups.ts';
import { identities } from '../../domains/iam/identities/identities.ts';
import { roleBindings } from '../../domains/iam/roles/role-bindings.ts';
import { mintOwnerToken, readOwner } from '../../identity/owner/owner-key.ts';
import { OWNER_RECOVERED, type Recovery } from '../../identity/owner/recover.ts';
import { find, findChildren } from '../../resource/read.ts';
import { deleteOne, update } from '../../resource/write.ts';
import { openStore } from '../../store/open.ts';
import type { Store } from '../../store/store.ts';
import { runInProcess, temporaryDirectory, wharf } from '../cli.testing.ts';
import { ExitCode } from '../exit-codes.ts';

/** A running server of its own for the current suite. */
function useServer(database: Database) {
  let server: TestServer;
  let store: Store;
  let env: Record<string, string>;
  before(async () => {
    server = await startTestServer(database);
    store = await openStore(server.dataLocation);
    const { dataDir, databaseUrl } = server.dataLocation;
    env = { WHARF_DATA: dataDir, ...(databaseUrl !== undefined && { WHARF_DATABASE_URL: databaseUrl }) };
  });
  after(async () => {
    await store.close();
    await server.remove();
  });
  return {
    get server() {
      return server;
    },
    get store() {
      return store;
    },
    get env() {
      return env;
    },
    run: (...args: string[]) => runInProcess(['owner', 'recover', ...args], env),
    async recover(...args: string[]): Promise<Recovery> {
      const { code, stdout, stderr } = await this.run(...args, '-o', 'json');
      assert.equal(code, 0, stderr);
      return JSON.parse(stdout);
    },
    newToken: () => mintOwnerToken(server.dataLocation.dataDir),
    /** Only an operator can create a group that is verified. An organization needs a kind then. */
    async createGroup(token: string, parent: string, name: string) {
      const response = await fetch(`${server.url}/iam/v2/groups/${parent}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ name, verified: true, ...(parent === '' && { kind: 'ORG_KIND_CUSTOMER' }) }),
      });
      return { ...((await response.json()) as { uid?: string }), status: response.status };
    },
  };
}

for (const database of databases) {
  describe(`wharf owner recover beside a running server on ${database.name}`, () => {
    const fixture = useServer(database);

    it('changes nothing when nothing is missing, and records its use', async () => {
      const { server, store } = fixture;
      const recovery = await fixture.recover();
      assert.deepEqual(recovery, {
        ...{ identity: (await readOwner(server.dataLocation.dataDir))?.identity, organization: server.organization },
        ...{ newKey: false, newIdentity: false, newOrganization: false, newBinding: false },
      });
      assert.equal((await fixture.createGroup(server.token, server.organization, 'as before')).status, 200);
      const events = await store.reader.all<{ scope: string; subject: string }>(
        'SELECT scope, subject FROM outbox WHERE type = $1',
        OWNER_RECOVERED,
      );
      assert.deepEqual(
        events.map((event) => ({ ...event })),
        [{ scope: server.organization, subject: recovery.identity }],
      );
      const { stdout, stderr } = await fixture.run();
      assert.match(stdout, /nothing was missing/);
      assert.doesNotMatch(stdout + stderr, /"d":/);
    });

    it('replaces a lost key, and the lost one becomes invalid', async () => {
      const { server } = fixture;
      const file = join(server.dataLocation.dataDir, 'owner.json');
      const lost = await fixture.newToken();
      rmSync(file);
      const { newKey, newIdentity } = await fixture.recover();
      assert.deepEqual([newKey, newIdentity], [true, false]);
      assert.equal(statSync(file).mode & 0o777, 0o600);
      assert.equal(
        (await fixture.createGroup(await fixture.newToken(), server.organization, 'with the new key')).status,
        200,
      );
      assert.equal((await fixture.createGroup(lost, server.organization, 'with the lost key')).status, 401);
      const leaked = await fixture.newToken();
      await fixture.recover('--new-key');
      assert.equal((await fixture.createGroup(leaked, server.organization, 'with the leaked key')).status, 401);
      assert.equal(
        (await fixture.createGroup(await fixture.newToken(), server.organization, 'with another key')).status,
        200,
      );
    });

    it('is named by the commands that miss the key, and replaces a damaged one', async () => {
      const { server, env } = fixture;
      const file = join(server.dataLocation.dataDir, 'owner.json');
      const token = () => runInProcess(['auth', 'token'], env);
      rmSync(file);
      const missing = await wharf(['auth', 'token'], env);
      assert.equal(missing.code, ExitCode.unauthenticated);
      assert.match(
        missing.stderr,
        /owner\.json is missing: run 'wharf owner recover --data .*', which writes a new one; or /,
      );
      await fixture.recover();
      for (const text of ['', '{"identity":', '{}', 'null', readFileSync(file, 'utf8').replace('"d"', '"e"')]) {
        writeFileSync(file, text);
        for (const { code, stderr } of [await token(), await fixture.run()]) {
          assert.equal(code, 1);
          assert.match(
            stderr,
            /owner\.json is damaged: restore it from a backup, or run 'wharf owner recover --new-key'/,
          );
        }
      }
      const { newKey, newIdentity } = await fixture.recover('--new-key');
      assert.deepEqual([newKey, newIdentity], [true, false]);
      const { stdout } = await token();
      assert.equal((await fixture.createGroup(stdout.trim(), server.organization, 'repaired')).status, 200);
    });

    it('enables a disabled owner', async () => {
      const { server, store } = fixture;
      const { identity } = (await readOwner(server.dataLocation.dataDir)) ?? assert.fail();
      await store.write(async (tx) => {
        const stored = (await find(tx, identities, identity)) ?? assert.fail();
        await update(
          tx,
          identities,
          stored,
          { message: stored.message, state: disable(stored.state, { time: 1, by: identity }) },
          Date.now(),
        );
      });
      assert.equal((await fixture.createGroup(await fixture.newToken(), server.organization, 'disabled')).status, 401);
      await fixture.recover();
      assert.equal((await fixture.createGroup(await fixture.newToken(), server.organization, 'enabled')).status, 200);
    });

    it('gives back the role, the identity and the organization', async () => {
      const { server, store } = fixture;
      const { identity } = (await readOwner(server.dataLocation.dataDir)) ?? assert.fail();
      const { uid: other = assert.fail() } = await fixture.createGroup(
        await fixture.newToken(),
        '',
        'another organization',
      );
      const bindings = (await findChildren(store.reader, roleBindings, server.organization)).concat(
        await findChildren(store.reader, roleBindings, other),
      );
      await store.write(async (tx) => {
        for (const binding of bindings) await deleteOne(tx, roleBindings, binding);
        await deleteOne(tx, identities, (await find(tx, identities, identity)) ?? assert.fail());
      });
      assert.equal(
        (await fixture.createGroup(await fixture.newToken(), server.organization, 'locked out')).status,
        401,
      );
      const { newKey, newIdentity, newBinding } = await fixture.recover('--organization', other);
      assert.deepEqual([newKey, newIdentity, newBinding], [false, true, true]);
      for (const parent of [server.organization, other]) {
        assert.equal((await fixture.createGroup(await fixture.newToken(), parent, 'back')).status, 200);
      }
    });
  });

  describe(`wharf owner recover after the first organization was deleted, on ${database.name}`, () => {
    const fixture = useServer(database);

    it('creates another one', async () => {
      const { server, store } = fixture;
      // As earlier versions permitted.
      await store.write(async (tx) => {
        const bindings = await findChildren(tx, roleBindings, server.organization);
        for (const binding of bindings) await deleteOne(tx, roleBindings, binding);
        await deleteOne(tx, groups, (await find(tx, groups, server.organization)) ?? assert.fail());
      });
      assert.equal((await fixture.createGroup(await fixture.newToken(), '', 'locked out')).status, 403);
      const { organization, newOrganization } = await fixture.recover();
      assert.ok(newOrganization && organization !== server.organization);
      assert.equal((await fixture.createGroup(await fixture.newToken(), organization, 'back')).status, 200);
      assert.equal((await find(store.reader, groups, organization))?.message.name, 'my-org');
      assert.equal((await fixture.recover()).newOrganization, false);
    });
  });
}

test('wharf owner recover refuses a directory without a database', async (t) => {
  const { code, stderr } = await runInProcess(['owner', 'recover', '--data', temporaryDirectory(t)]);
  assert.equal(code, 1);
  assert.match(stderr, /^wharf: no database in .*: start the server once, or give its data directory with --data\n$/);
});
