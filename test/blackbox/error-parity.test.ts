import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { DescMethodUnary, JsonObject } from '@bufbuild/protobuf';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { files, methodTable } from '../../src/contract/method-table.ts';
import { databases } from '../support/databases.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { CallError, type Client, wires } from '../support/wires.ts';

const { createGroup, getGroup, listGroups, updateGroup, deleteGroup } = GroupsService.method;
const [database] = databases;

/** One case for each kind of error. */
describe('an error carries the same details over REST and gRPC', () => {
  let server: TestServer;
  let clients: Client[];
  let org: string;
  before(async () => {
    assert.ok(database);
    server = await startTestServer(database);
    org = server.organization;
    clients = wires.map((wire) => wire.connect(server.url, server.token));
    for (const name of ['taken', 'parent']) await clients[0]?.call(createGroup, { parent: org, group: { name } });
  });
  after(async () => {
    for (const client of clients) client.close();
    await server.remove();
  });

  async function same(method: DescMethodUnary, request: object, options?: { token?: string }): Promise<CallError> {
    const errors = await Promise.all(
      clients.map((client) =>
        client.call(method, request as never, options).then(
          () => assert.fail(`${method.name} should have failed`),
          (error: unknown) => error,
        ),
      ),
    );
    const [rest, grpc] = errors;
    assert.ok(rest instanceof CallError && grpc instanceof CallError, String(errors));
    assert.deepEqual(comparable(rest), comparable(grpc));
    assert.equal(rest.detail('ErrorInfo')?.reason, grpc.detail('ErrorInfo')?.reason);
    return rest;
  }

  const cases: Record<string, () => Promise<CallError>> = {
    'no token': () => same(listGroups, {}, {}),
    'a bad token': () => same(listGroups, {}, { token: 'nonsense' }),
    'a missing field': () => same(createGroup, { parent: org, group: {} }),
    'several bad fields': () => same(createGroup, { parent: org, group: { name: 'NO', description: '\n' } }),
    'a bad parent': () => same(createGroup, { parent: 'no such parent', group: { name: 'fine' } }),
    'a parent out of reach': () => same(createGroup, { parent: 'f'.repeat(40), group: { name: 'fine' } }),
    'a missing parent': () => same(createGroup, { parent: `${org}/${'f'.repeat(16)}`, group: { name: 'fine' } }),
    'a taken name': () => same(createGroup, { parent: org, group: { name: 'taken' } }),
    'no uid': () => same(deleteGroup, { uid: '' }),
    'a malformed uid': () => same(getGroup, { uid: 'x/y' }),
    'a uid out of reach': () => same(getGroup, { uid: 'f'.repeat(40) }),
    'a uid of a missing group': () => same(getGroup, { uid: `${org}/${'f'.repeat(16)}` }),
    'an update of a missing group': () =>
      same(updateGroup, { group: { uid: `${org}/${'f'.repeat(16)}`, name: 'fine' } }),
    'an unknown mask path': () => same(updateGroup, { group: { uid: org }, updateMask: { paths: ['nothing.here'] } }),
    'a mask of 1,000 paths': () =>
      same(updateGroup, { group: { uid: org }, updateMask: { paths: Array.from({ length: 1000 }, () => 'name') } }),
    'a group with children': () => same(deleteGroup, { uid: org }),
    'a negative page size': () => same(listGroups, { pageSize: -5 }),
    'a negative skip': () => same(listGroups, { skip: -5 }),
    'an unknown order': () => same(listGroups, { orderBy: 'size' }),
    'a forged page token': () => same(listGroups, { pageToken: 'AAAA' }),
    'a malformed hierarchy filter': () => same(listGroups, { uidp: { descendantsOf: 'x' } }),
  };
  for (const [name, refused] of Object.entries(cases)) {
    test(name, async () => {
      const error = await refused();
      assert.notEqual(error.code, 13);
      assert.equal(error.detail('ErrorInfo')?.domain, 'iam.wharfinger.dev');
      assert.ok(error.detail('RequestInfo')?.requestId);
    });
  }

  test('every method refuses an unauthenticated call with the same error', async () => {
    for (const { desc, access, routes } of methodTable(files)) {
      if (access === 'public' || access === 'optional') continue;
      if (routes.length === 0) continue; // Served over gRPC only.
      // The variables of a path must not be empty.
      const variables = [...(routes[0]?.template ?? '').matchAll(/\{(\w+)[=}]/g)].map(([, name = '']) => name);
      const fields = desc.input.fields.filter(({ name }) => variables.includes(name));
      const request = Object.fromEntries(fields.map(({ localName }) => [localName, 'x']));
      assert.equal((await same(desc, request, {})).code, 16, desc.name);
    }
  });
});

/** The error without the request id, which differs for each request. */
function comparable({ code, message, details }: CallError): object {
  return { code, message, details: details.map((detail): JsonObject => ({ ...detail, requestId: '' })) };
}
