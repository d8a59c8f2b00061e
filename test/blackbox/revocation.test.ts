import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Code } from '../../src/base/errors.ts';
import { Capability } from '../../src/contract/gen/capabilities/capabilities_pb.js';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService } from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { RolesService } from '../../src/contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { builtinRoleUid, callerWithoutRole } from '../support/callers.ts';
import { databases } from '../support/databases.ts';
import { rejects } from '../support/rejects.ts';
import { startServerOn, startTestServer, type TestServer } from '../support/server.ts';
import { type Client, wires } from '../support/wires.ts';

const { getGroup } = GroupsService.method;
const { createRoleBinding, deleteRoleBinding, updateRoleBinding } = RoleBindingsService.method;
const { createRole, updateRole } = RolesService.method;
const { deleteIdentity, updateIdentity } = IdentitiesService.method;
const ROUNDS = 20;

for (const database of databases) {
  /** On SQLite both are the same server, because only one process can open the database. */
  const shared = database.name === 'PostgreSQL';
  describe(`revocations take effect immediately, on ${shared ? 'two servers with one PostgreSQL' : 'SQLite'}`, () => {
    let first: TestServer;
    let second: TestServer;
    let owner: Client;
    let otherClient: Client;
    let org: string;
    before(async () => {
      const env = { WHARF_MASTER_KEY: '11'.repeat(32) };
      first = await startTestServer(database, { env });
      second = shared ? await startServerOn(first.dataLocation, { env }) : first;
      org = first.organization;
      owner = wires[0]?.connect(first.url, first.token) ?? assert.fail();
      otherClient = wires[1]?.connect(second.url, undefined) ?? assert.fail();
    });
    after(async () => {
      owner.close();
      otherClient.close();
      if (second !== first) await second.stop();
      await first.remove();
    });

    const readOrg = (token: string) => otherClient.call(getGroup, { uid: org }, { token });

    test('a deleted binding', async () => {
      const caller = await callerWithoutRole(first, org);
      const token = await caller.token();
      for (let round = 0; round < ROUNDS; round++) {
        await rejects(readOrg(token), Code.PERMISSION_DENIED);
        const roleBinding = { identityUid: caller.uid, roleUid: builtinRoleUid('viewer') };
        const { uid } = await owner.call(createRoleBinding, { parent: org, roleBinding });
        await readOrg(token);
        await owner.call(deleteRoleBinding, { uid });
      }
      await rejects(readOrg(token), Code.PERMISSION_DENIED);
    });

    test('a binding that was updated to another role', async () => {
      const caller = await callerWithoutRole(first, org);
      const token = await caller.token();
      const roleBinding = { identityUid: caller.uid, roleUid: builtinRoleUid('viewer') };
      const { uid } = await owner.call(createRoleBinding, { parent: org, roleBinding });
      await readOrg(token);
      await owner.call(updateRoleBinding, { roleBinding: { uid, roleUid: builtinRoleUid('advisories.viewer') } });
      await rejects(readOrg(token), Code.PERMISSION_DENIED);
    });

    test('a capability that was removed from a role', async () => {
      const caller = await callerWithoutRole(first, org);
      const token = await caller.token();
      const capabilities = [Capability.CAP_IAM_GROUPS_LIST, Capability.CAP_IAM_ROLES_LIST];
      const role = await owner.call(createRole, { parent: org, role: { name: 'reader', capabilities } });
      const roleBinding = { identityUid: caller.uid, roleUid: role.uid };
      await owner.call(createRoleBinding, { parent: org, roleBinding });
      await readOrg(token);
      await owner.call(updateRole, { role: { uid: role.uid, capabilities: [Capability.CAP_IAM_ROLES_LIST] } });
      await rejects(readOrg(token), Code.PERMISSION_DENIED);
    });

    test('an identity that was deleted, or updated to another relationship', async () => {
      for (const revoke of [
        (uid: string) => owner.call(deleteIdentity, { uid }),
        (uid: string) =>
          owner.call(updateIdentity, {
            identity: {
              uid,
              relationship: {
                case: 'claimMatch',
                value: {
                  iss: { case: 'issuer', value: 'https://elsewhere.test' },
                  sub: { case: 'subject', value: 'x' },
                },
              },
            },
            updateMask: { paths: ['claim_match'] },
          }),
      ]) {
        const caller = await callerWithoutRole(first, org);
        const token = await caller.token();
        await rejects(readOrg(token), Code.PERMISSION_DENIED);
        await revoke(caller.uid);
        await rejects(readOrg(token), Code.UNAUTHENTICATED);
      }
    });
  });
}
