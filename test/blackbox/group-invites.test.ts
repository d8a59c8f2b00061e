import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { durationFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { anonymousCaller } from '../../src/access/create-caller.ts';
import { ApiError, Code } from '../../src/base/errors.ts';
import { newUid, ROOT } from '../../src/base/uid.ts';
import { capabilitiesIn } from '../../src/contract/capabilities.ts';
import { Capability } from '../../src/contract/gen/capabilities/capabilities_pb.js';
import { GroupInvitesService } from '../../src/contract/gen/chainguard/platform/iam/v2/group_invites_pb.js';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { RolesService } from '../../src/contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { files, methodTable } from '../../src/contract/method-table.ts';
import type { EmailProof } from '../../src/domains/iam/joining/email-proof.ts';
import { redeemInvite } from '../../src/domains/iam/joining/group-invites.ts';
import { builtinRole } from '../../src/domains/iam/roles/builtin-roles.ts';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import { builtinRoleUid, callerWithRole } from '../support/callers.ts';
import { assertConsistent } from '../support/consistency.ts';
import { databases } from '../support/databases.ts';
import { assertNotStored, capturedLog, eventsAbout } from '../support/inspect.ts';
import { rejects } from '../support/rejects.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { newIdentityProvider } from '../support/tenants.ts';
import { type Client, wires } from '../support/wires.ts';

const { createGroupInvite, getGroupInvite, listGroupInvites, deleteGroupInvite } = GroupInvitesService.method;
const { createGroup, deleteGroup } = GroupsService.method;
const { createRole, deleteRole } = RolesService.method;
const { listRoleBindings } = RoleBindingsService.method;

const VIEWER = builtinRoleUid('viewer');
const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const [method = assert.fail()] = methodTable(files);
const proof: EmailProof = {
  address: 'ada@example.com',
  verified: true,
  issuer: 'https://issuer.example.com',
  audiences: ['client'],
  isForServer: false,
};

for (const database of databases) {
  describe(`group invites on ${database.name}`, () => {
    const { log, lines } = capturedLog();
    const codes: string[] = [];
    let now = Date.now();
    let server: TestServer;
    let store: Store;
    before(async () => {
      server = await startTestServer(database, { log, clock: () => now });
      store = await openStore(server.dataLocation);
    });
    after(async () => {
      await store.close();
      await server.remove();
    });

    for (const wire of wires) {
      describe(`over ${wire.name}`, () => suite(wire.name.toLowerCase(), () => wire.connect(server.url, server.token)));
    }

    test('no code is stored or logged', async () => {
      const secrets = codes.map((code) => code.split('.')[1] ?? assert.fail());
      assert.ok(secrets.length > 0 && lines.length > 0);
      await assertNotStored(store.reader, secrets);
      for (const secret of secrets) assert.ok(!lines.join('').includes(secret));
    });

    test('the listing index matches the stored resources', () => assertConsistent(store.reader));

    function suite(prefix: string, connect: () => Client): void {
      let api: Client;
      let org: string;
      before(async () => {
        api = connect();
        org = (await newGroup(`${prefix} invites`, '')).uid;
        await newIdentityProvider(api, org, proof.issuer, 'client');
      });
      after(() => api.close());

      const newGroup = (name: string, parent: string) => api.call(createGroup, { parent, group: { name } });
      const invite = async (fields: object = {}, parent = org) => {
        const groupInvite = { roleUid: VIEWER, ttl: durationFromMs(MINUTE), ...fields };
        const created = await api.call(createGroupInvite, { parent, groupInvite });
        codes.push(created.code);
        return created;
      };
      const redeem = (code: string, identity = newUid(ROOT), email?: EmailProof) =>
        store.write((db) =>
          redeemInvite(
            { method, caller: anonymousCaller, authorization: undefined, now, db, unchanged() {}, setHeader() {} },
            code,
            identity,
            email,
          ),
        );
      const refused = async (work: Promise<unknown>): Promise<string> => {
        const error = await work.then(
          () => assert.fail('it should have been refused'),
          (thrown: unknown) => thrown,
        );
        assert.ok(error instanceof ApiError && error.code === Code.PERMISSION_DENIED, String(error));
        return error.message;
      };
      const bindingsOf = async (identity: string) =>
        (await api.call(listRoleBindings, { identity })).roleBindings.map(({ uid, roleUid }) => ({ uid, roleUid }));

      test('an invite can be created, read, listed and deleted, and shows its code only when created', async () => {
        const created = await invite({ email: 'new@example.com', singleUse: true });
        assert.match(created.uid, new RegExp(`^${org}/[0-9a-f]{16}$`));
        assert.match(created.code, /^[0-9a-f]{16}\.[\w-]{43}$/);
        assert.ok(created.code.startsWith(`${created.keyId}.`));
        assert.equal(created.ttl, undefined);
        assert.equal(created.expirationTime && timestampMs(created.expirationTime), now + MINUTE);
        assert.ok(created.createTime && created.updateTime);
        assert.equal(created.role?.uid, VIEWER);
        assert.equal(created.role?.name, 'viewer');
        assert.equal(created.role?.description, 'Viewer Role (built-in)');
        assert.deepEqual(created.role?.capabilities, capabilitiesIn(builtinRole(VIEWER)?.capabilities ?? 0n));

        const read = await api.call(getGroupInvite, { uid: created.uid });
        assert.deepEqual(read, { ...created, code: '' });
        const listed = await api.call(listGroupInvites, { keyId: created.keyId });
        assert.deepEqual(listed.groupInvites, [read]);

        await api.call(deleteGroupInvite, { uid: created.uid });
        await rejects(api.call(getGroupInvite, { uid: created.uid }), Code.NOT_FOUND);
        await refused(redeem(created.code));

        const [creation, deletion] = await eventsAbout(store.reader, created.uid);
        assert.equal(creation?.type, 'dev.chainguard.api.iam.group_invite.created.v1');
        assert.deepEqual(creation?.extensions, { group: org });
        assert.deepEqual(Object.keys(creation?.body ?? {}).sort(), ['expiration', 'id']);
        assert.equal(deletion?.type, 'dev.chainguard.api.iam.group_invite.deleted.v1');
      });

      test('invites are listed newest first', async () => {
        const { uid: group } = await newGroup('for lists', org);
        const made: string[] = [];
        for (let i = 0; i < 3; i++) {
          made.unshift((await invite({}, group)).uid);
          now += 1;
        }
        const list = async (request: object) =>
          (await api.call(listGroupInvites, request)).groupInvites.map(({ uid }) => uid);
        const uidp = { childrenOf: group };
        assert.deepEqual(await list({ uidp }), made);
        assert.deepEqual(await list({ uidp, orderBy: 'create_time' }), made.toReversed());
        assert.deepEqual(await list({ uidp, keyId: 'nonsense' }), []);
        const page = await api.call(listGroupInvites, { uidp, pageSize: 2 });
        assert.equal(page.totalCount, 3n);
        assert.deepEqual(await list({ uidp, pageSize: 2, pageToken: page.nextPageToken }), made.slice(2));
        await rejects(api.call(deleteGroup, { uid: group }), Code.FAILED_PRECONDITION);
      });

      test('validation errors name the invalid field', async () => {
        const fields = async (groupInvite: object) =>
          (await rejects(api.call(createGroupInvite, { parent: org, groupInvite }), Code.INVALID_ARGUMENT)).fields;
        const fine = { roleUid: VIEWER, ttl: durationFromMs(MINUTE) };
        assert.deepEqual(await fields({}), ['role_uid', 'ttl']);
        assert.deepEqual(await fields({ roleUid: VIEWER }), ['ttl']);
        assert.deepEqual(await fields({ ...fine, ttl: durationFromMs(0) }), ['ttl']);
        assert.deepEqual(await fields({ ...fine, ttl: durationFromMs(-MINUTE) }), ['ttl']);
        assert.deepEqual(await fields({ ...fine, ttl: durationFromMs(30 * DAY + 1) }), ['ttl']);
        for (const email of ['nonsense', 'a@b@c', 'a b@example.com', `${'x'.repeat(300)}@example.com`]) {
          assert.deepEqual(await fields({ ...fine, email }), ['email']);
        }
        assert.deepEqual(await fields({ ...fine, roleUid: 'nonsense' }), ['role_uid']);
        assert.deepEqual(await fields({ ...fine, roleUid: '0'.repeat(40) }), ['role_uid']);
        await invite({ ttl: durationFromMs(30 * DAY) });
      });

      test('an invite cannot grant capabilities that its creator lacks', async () => {
        const capabilities = [Capability.CAP_IAM_GROUP_INVITES_CREATE, Capability.CAP_IAM_ROLE_BINDINGS_CREATE];
        const role = { name: `${prefix} inviter`, capabilities };
        const { uid: roleUid } = await api.call(createRole, { parent: org, role });
        const caller = await callerWithRole(server, roleUid, org);
        const options = { token: await caller.token() };
        const attempt = (roleUid: string) =>
          api.call(createGroupInvite, { parent: org, groupInvite: { roleUid, ttl: durationFromMs(MINUTE) } }, options);
        await rejects(attempt(VIEWER), Code.PERMISSION_DENIED);
        await attempt(roleUid);
        await rejects(api.call(deleteRole, { uid: roleUid }), Code.FAILED_PRECONDITION);
      });

      test('a code grants the role on the group to each identity that redeems it', async () => {
        const { code } = await invite();
        const [one, two] = [newUid(ROOT), newUid(ROOT)];
        assert.deepEqual(await redeem(code, one), { group: org, roleUid: VIEWER });
        await redeem(code, two);
        const bindings = await bindingsOf(one);
        assert.equal(bindings.length, 1);
        assert.equal(bindings[0]?.roleUid, VIEWER);
        assert.ok(bindings[0]?.uid.startsWith(`${org}/`));
        // An identity that has the role already gets no second binding.
        await redeem(code, one);
        assert.deepEqual(await bindingsOf(one), bindings);
        assert.equal((await bindingsOf(two)).length, 1);
      });

      test('every invalid code is refused with the same message', async () => {
        const { code, keyId } = await invite();
        const used = await invite({ singleUse: true });
        await redeem(used.code);
        const wrong = [
          '',
          'nonsense',
          'x'.repeat(100_000),
          keyId,
          `${keyId}.${'A'.repeat(43)}`,
          `${code}A`,
          code.slice(0, -1),
          `${'0'.repeat(16)}.${code.split('.')[1]}`,
          used.code,
        ];
        const messages = await Promise.all(wrong.map((text) => refused(redeem(text))));
        assert.equal(new Set(messages).size, 1);
      });

      test('an invite expires', async () => {
        const { code } = await invite();
        now += MINUTE - 1;
        await redeem(code);
        now += 1;
        assert.match(await refused(redeem(code)), /expired/);
      });

      test('an invite for an email address can be redeemed only with that address, verified', async () => {
        const { code } = await invite({ email: 'Ada@example.com' });
        const refusals = [
          await refused(redeem(code)),
          await refused(redeem(code, newUid(ROOT), { ...proof, verified: false })),
          await refused(redeem(code, newUid(ROOT), { ...proof, address: 'eve@example.com' })),
          await refused(redeem(code, newUid(ROOT), { ...proof, issuer: 'https://another.example.com' })),
          await refused(redeem(code, newUid(ROOT), { ...proof, audiences: ['another client'] })),
        ];
        for (const message of refusals) assert.doesNotMatch(message, /ada@/i);
        await redeem(code, newUid(ROOT), { ...proof, address: 'ADA@example.com' });
      });

      test('a single-use code that is redeemed concurrently succeeds once', async () => {
        const { code, uid } = await invite({ singleUse: true });
        const identities = Array.from({ length: 8 }, () => newUid(ROOT));
        const results = await Promise.allSettled(identities.map((identity) => redeem(code, identity)));
        assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1);
        const bound = (await Promise.all(identities.map(bindingsOf))).filter(({ length }) => length > 0);
        assert.equal(bound.length, 1);
        await rejects(api.call(getGroupInvite, { uid }), Code.NOT_FOUND);
      });

      test('a refused attempt does not consume a single-use invite', async () => {
        const { code } = await invite({ singleUse: true, email: 'ada@example.com' });
        await refused(redeem(code));
        await redeem(code, newUid(ROOT), proof);
      });
    }
  });
}
