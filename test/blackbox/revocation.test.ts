import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Code } from '../../src/base/errors.ts';
import { Capability } from '../../src/contract/gen/capabilities/capabilities_pb.js';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService } from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { RolesService } from '../../src/contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { builtinUid, stranger } from '../support/callers.ts';
import { databases } from '../support/databases.ts';
import { rejects } from '../support/rejects.ts';
import { startServerIn, startTestServer, type TestServer } from '../support/server.ts';
import { type Client, wires } from '../support/wires.ts';

const { getGroup } = GroupsService.method;
const { createRoleBinding, deleteRoleBinding, updateRoleBinding } = RoleBindingsService.method;
const { createRole, updateRole } = RolesService.method;
const { deleteIdentity, updateIdentity } = IdentitiesService.method;
const ROUNDS = 20;

for (const database of databases) {
  /** On SQLite both are one server: one process has the file. */
  const shared = database.name === 'PostgreSQL';
  describe(`what is revoked is gone with the next request, on ${shared ? 'two servers of one PostgreSQL' : 'SQLite'}`, () => {
    let first: TestServer;
    let second: TestServer;
    let owner: Client;
    let visitor: Client;
    let org: string;
    before(async () => {
      const env = { WHARF_MASTER_KEY: '11'.repeat(32) };
      first = await startTestServer(database, { env });
      second = shared ? await startServerIn(first.home, { env }) : first;
      org = first.organization;
      owner = wires[0]?.connect(first.url, first.token) ?? assert.fail();
      visitor = wires[1]?.connect(second.url, undefined) ?? assert.fail();
    });
    after(async () => {
      owner.close();
      visitor.close();
      if (second !== first) await second.stop();
      await first.remove();
    });

    const look = (token: string) => visitor.call(getGroup, { uid: org }, { token });

    test('a binding', async () => {
      const caller = await stranger(first, org);
      const token = await caller.token();
      for (let round = 0; round < ROUNDS; round++) {
        await rejects(look(token), Code.PERMISSION_DENIED);
        const roleBinding = { identityUid: caller.uid, roleUid: builtinUid('viewer') };
        const { uid } = await owner.call(createRoleBinding, { parent: org, roleBinding });
        await look(token);
        await owner.call(deleteRoleBinding, { uid });
      }
      await rejects(look(token), Code.PERMISSION_DENIED);
    });

    test('a binding that changes its role', async () => {
      const caller = await stranger(first, org);
      const token = await caller.token();
      const roleBinding = { identityUid: caller.uid, roleUid: builtinUid('viewer') };
      const { uid } = await owner.call(createRoleBinding, { parent: org, roleBinding });
      await look(token);
      await owner.call(updateRoleBinding, { roleBinding: { uid, roleUid: builtinUid('advisories.viewer') } });
      await rejects(look(token), Code.PERMISSION_DENIED);
    });

    test('a capability of a role', async () => {
      const caller = await stranger(first, org);
      const token = await caller.token();
      const capabilities = [Capability.CAP_IAM_GROUPS_LIST, Capability.CAP_IAM_ROLES_LIST];
      const role = await owner.call(createRole, { parent: org, role: { name: 'reader', capabilities } });
      const roleBinding = { identityUid: caller.uid, roleUid: role.uid };
      await owner.call(createRoleBinding, { parent: org, roleBinding });
      await look(token);
      await owner.call(updateRole, { role: { uid: role.uid, capabilities: [Capability.CAP_IAM_ROLES_LIST] } });
      await rejects(look(token), Code.PERMISSION_DENIED);
    });

    test('an identity, and the proof of one', async () => {
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
        const caller = await stranger(first, org);
        const token = await caller.token();
        await rejects(look(token), Code.PERMISSION_DENIED);
        await revoke(caller.uid);
        await rejects(look(token), Code.UNAUTHENTICATED);
      }
    });
  });
}
