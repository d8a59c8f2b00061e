import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Code } from '../../src/base/errors.ts';
import { type CapabilitySet, capabilitySetOf, covers, NO_CAPABILITIES } from '../../src/contract/capabilities.ts';
import type { Method } from '../../src/contract/method.ts';
import { files, methodTable } from '../../src/contract/method-table.ts';
import { withV2beta1 } from '../../src/contract/v2beta1.ts';
import { builtinRoles } from '../../src/domains/iam/roles/builtin-roles.ts';
import { callerWith, stranger } from '../support/callers.ts';
import { databases } from '../support/databases.ts';
import { requestAt } from '../support/requests.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { CallError, type Client, wires } from '../support/wires.ts';

const ROLES = ['owner', 'editor', 'viewer', 'console_viewer', 'registry.pull'] as const;

/** Unscoped in the contract, yet checked by their handlers at the uid that the request names. */
const CHECKED_BY_HANDLER = new Set([
  'chainguard.platform.iam.v2.GroupsService/CreateGroup',
  'chainguard.platform.iam.v2.RolesService/GetRole',
  'chainguard.platform.iam.Groups/Create',
  'chainguard.platform.iam.GroupInvites/CreateWithGroup',
  'chainguard.platform.events.Identities/Create',
]);

/** Methods that authenticate by themselves, or ask nothing of the caller. */
const isOpen = ({ access }: Method): boolean => access === 'public' || access === 'optional';

const idOf = ({ parent, name }: Method['desc']): string => `${parent.typeName}/${name}`;

/** What a method is called has little to do with the database: on the second, earlier versions are tried by a few over gRPC. */
const earlier = /^chainguard\.platform\.(?!\w+\.v2\.)/;
const FEW: readonly string[] = ['owner', 'viewer', 'stranger'];
const served = withV2beta1(methodTable(files));

for (const database of databases) {
  describe(`who may call what on ${database.name}`, () => {
    let server: TestServer;
    const clients: Client[] = [];
    const callers: { name: string; token: string | undefined; capabilities: CapabilitySet }[] = [];

    before(async () => {
      server = await startTestServer(database);
      for (const wire of wires) clients.push(wire.connect(server.url, undefined));
      for (const name of ROLES) {
        const { token } = await callerWith(server, name, server.organization);
        const capabilities = builtinRoles.find((role) => role.name === name)?.capabilities ?? assert.fail(name);
        callers.push({ name, token: await token(), capabilities });
      }
      const { token } = await stranger(server, server.organization);
      callers.push({ name: 'stranger', token: await token(), capabilities: NO_CAPABILITIES });
    });
    after(async () => {
      for (const client of clients) client.close();
      await server.remove();
    });

    /** The code of an answer: OK, or why not. */
    async function codeOf(client: Client, method: Method, token: string | undefined): Promise<Code> {
      // A uid below the organization that does not exist: nothing that is allowed has an effect.
      const nowhere = `${server.organization}/${'0'.repeat(16)}`;
      try {
        await client.call(method.desc, requestAt(method, nowhere) as never, { token, id: method.id });
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
          const asNobody = await codeOf(client, method, undefined);
          if (isOpen(method)) continue;
          assert.equal(asNobody, Code.UNAUTHENTICATED, 'nobody');
          for (const { name, token, capabilities } of callers) {
            if (isBrief && !FEW.includes(name)) continue;
            const code = await codeOf(client, method, token);
            const wanted = capabilitySetOf(method.capabilities);
            const isChecked = method.access === 'scoped' || CHECKED_BY_HANDLER.has(idOf(method.desc));
            const allowed = !isChecked || covers(capabilities, wanted);
            assert.equal(code !== Code.PERMISSION_DENIED, allowed, `${name} got ${code}`);
            assert.notEqual(code, Code.UNAUTHENTICATED, name);
            assert.notEqual(code, Code.INTERNAL, name);
          }
        }
      });
    }
  });
}
