import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code } from '../../src/base/errors.ts';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { files, methodTable } from '../../src/contract/method-table.ts';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { CallError } from '../support/wires.ts';

/**
 * The List methods whose items have a time of creation, with a request field for the order. Documents, reports and
 * metadata have only the order that the contract names, and a time of creation that v2 does not declare.
 */
const ONE_ORDER = /\/List(?:Documents|ResolvedVulnsReports|VulnerabilityMetadata)$/;
const lists = methodTable(files).filter(({ id, desc: { input, output } }) => {
  if (ONE_ORDER.test(id)) return false;
  const items = output.fields.find(({ fieldKind, message }) => fieldKind === 'list' && message !== undefined);
  return (
    input.fields.some(({ name }) => name === 'order_by') &&
    items?.message?.fields.some(({ name }) => name === 'create_time')
  );
});

onEveryDatabaseAndWire('lists with a time of creation', (fixture) => {
  test('can be ordered by created_at and by create_time', async () => {
    assert.ok(lists.length >= 18);
    for (const { id, desc } of lists) {
      for (const orderBy of ['created_at', 'created_at desc', 'createdAt', 'create_time', 'createTime desc']) {
        const request = { orderBy, group: fixture.org, parent: fixture.org };
        try {
          await fixture.api.call(desc, request as never);
        } catch (error) {
          // A list may need another request field. It must not refuse the order.
          assert.ok(error instanceof CallError, `${id} with ${orderBy}: ${error}`);
          assert.ok(!error.fields.includes('order_by'), `${id} with ${orderBy}: ${error.message}`);
          assert.notEqual(error.code, Code.INTERNAL, id);
        }
      }
    }
  });

  test('an embedded group, identity and role has its description, also an empty one', async () => {
    const url = new URL('/iam/v2/roleBindings', fixture.server.url);
    const response = await fetch(url, { headers: { authorization: `Bearer ${fixture.server.token}` } });
    const { roleBindings } = (await response.json()) as { roleBindings: Record<string, Record<string, unknown>>[] };
    const [binding = assert.fail()] = roleBindings;
    for (const embedded of ['identity', 'group']) assert.equal(binding[embedded]?.description, '', embedded);
    assert.ok(binding.role?.description);
    const { roleBindings: typed } = await fixture.api.call(RoleBindingsService.method.listRoleBindings, {});
    assert.equal(typed[0]?.group?.description, '');
  });
});
