import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Code } from '../../src/base/errors.ts';
import { type CapabilitySet, capabilitySetOf, covers, NO_CAPABILITIES } from '../../src/contract/capabilities.ts';
import type { Method } from '../../src/contract/method.ts';
import { files, methodTable } from '../../src/contract/method-table.ts';
import { withV2beta1 } from '../../src/contract/v2beta1.ts';
import { builtinRoles } from '../../src/domains/iam/roles/builtin-roles.ts';
import { callerWithoutRole, callerWithRole } from '../support/callers.ts';
import { databases } from '../support/databases.ts';
import { requestWithUid } from '../support/request-with-uid.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { CallError, type Client, wires } from '../support/wires.ts';

const ROLES = ['owner', 'editor', 'viewer', 'console_viewer', 'registry.pull'] as const;

/** Unscoped in the contract, but their operations check capabilities at the uid in the request. */
const CHECKED_BY_HANDLER = new Set([
  'chainguard.platform.iam.v2.GroupsService/CreateGroup',
  'chainguard.platform.iam.v2.RolesService/GetRole',
  'chainguard.platform.iam.Groups/Create',
  'chainguard.platform.iam.GroupInvites/CreateWithGroup',
  'chainguard.platform.events.Identities/Create',
  'chainguard.platform.registry.Entitlements/AddEntitlementImages',
  'chainguard.platform.registry.Entitlements/RemoveEntitlementImages',
  'chainguard.platform.registry.Entitlements/SwapEntitlementImages',
  'wharfinger.iam.v1.SessionsService/DeleteSession',
  'wharfinger.iam.v1.SessionsService/EndSessions',
]);

/** Lists with records for everybody, and those that refuse the request of this test before they look at the caller. */
const LISTS_FOR_EVERYBODY = new Set([
  'chainguard.platform.iam.v2.RolesService/ListRoles',
  'wharfinger.iam.v1.SessionsService/ListSessions',
  'chainguard.platform.libraries.v2.ArtifactsService/ListArtifacts',
  'chainguard.platform.libraries.v2.ArtifactsService/ListArtifactVersions',
  'chainguard.platform.advisory.v2.SecurityAdvisoryService/ListResolvedVulnsReports',
]);

/** Whether a list refuses callers who can list nothing. Those of v1 are empty then. */
const isCheckedList = ({ desc, access, isV1 }: Method): boolean =>
  access === 'unscoped' && desc.name.startsWith('List') && !isV1 && !LISTS_FOR_EVERYBODY.has(idOf(desc));

/** Methods that authenticate by themselves or need no authentication. */
const isOpen = ({ access }: Method): boolean => access === 'public' || access === 'optional';

const idOf = ({ parent, name }: Method['desc']): string => `${parent.typeName}/${name}`;

/** Access does not depend on the database, so the second tests earlier versions with few callers, over gRPC only. */
const earlier = /^chainguard\.platform\.(?!\w+\.v2\.)/;
const FEW_CALLERS: readonly string[] = ['owner', 'viewer', 'no role'];
const served = withV2beta1(methodTable(files));

for (const database of databases) {
  describe(`access to each method on ${database.name}`, () => {
    let server: TestServer;
    const clients: Client[] = [];
    const callers: { name: string; token: string | undefined; capabilities: CapabilitySet }[] = [];

    before(async () => {
      server = await startTestServer(database);
      for (const wire of wires) clients.push(wire.connect(server.url, undefined));
      for (const name of ROLES) {
        const { token } = await callerWithRole(server, name, server.organization);
        const capabilities = builtinRoles.find((role) => role.name === name)?.capabilities ?? assert.fail(name);
        callers.push({ name, token: await token(), capabilities });
      }
      const { token } = await callerWithoutRole(server, server.organization);
      callers.push({ name: 'no role', token: await token(), capabilities: NO_CAPABILITIES });
    });
    after(async () => {
      for (const client of clients) client.close();
      await server.remove();
    });

    /** Returns the status code of a call. */
    async function codeOf(client: Client, method: Method, token: string | undefined): Promise<Code> {
      // The uid does not exist, so allowed calls have no effect.
      const nowhere = `${server.organization}/${'0'.repeat(16)}`;
      try {
        await client.call(method.desc, requestWithUid(method, nowhere) as never, { token, id: method.id });
        return Code.OK;
      } catch (error) {
        assert.ok(error instanceof CallError, String(error));
        return error.code as Code;
      }
    }

    for (const method of served) {
      const isBrief = database !== databases[0] && earlier.test(method.id);
      test(method.id, async () => {
        for (const [at, client] of clients.entries()) {
          if (wires[at]?.name === 'REST' && (isBrief || method.routes.length === 0)) continue;
          const anonymousCode = await codeOf(client, method, undefined);
          if (isOpen(method)) continue;
          assert.equal(anonymousCode, Code.UNAUTHENTICATED, 'an anonymous caller');
          for (const { name, token, capabilities } of callers) {
            if (isBrief && !FEW_CALLERS.includes(name)) continue;
            const code = await codeOf(client, method, token);
            const required = capabilitySetOf(method.capabilities);
            const isChecked =
              method.access === 'scoped' ||
              method.access === 'server' ||
              isCheckedList(method) ||
              CHECKED_BY_HANDLER.has(idOf(method.desc));
            const allowed = !isChecked || covers(capabilities, required);
            assert.equal(code !== Code.PERMISSION_DENIED, allowed, `${name} got ${code}`);
            assert.notEqual(code, Code.UNAUTHENTICATED, name);
            assert.notEqual(code, Code.INTERNAL, name);
          }
        }
      });
    }
  });
}
