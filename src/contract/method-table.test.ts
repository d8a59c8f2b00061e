import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DescFile } from '@bufbuild/protobuf';
import { clearExtension, clone, create, createFileRegistry, setExtension } from '@bufbuild/protobuf';
import type { DescriptorProto, FieldDescriptorProto, FileDescriptorProto, MethodOptions } from '@bufbuild/protobuf/wkt';
import { FieldDescriptorProtoSchema, FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { Capability } from './gen/capabilities/capabilities_pb.js';
import { file_chainguard_platform_iam_v2_groups as groups } from './gen/chainguard/platform/iam/v2/groups_pb.js';
import { v2Files } from './gen/files.js';
import { http } from './gen/google/api/annotations_pb.js';
import { HttpRuleSchema } from './gen/google/api/http_pb.js';
import * as options from './gen/wharfinger/options/v1/options_pb.js';
import { files, methodTable } from './method-table.ts';

const table = methodTable(files);
const find = (id: string) => table.find((method) => method.id === `chainguard.platform.${id}`) ?? assert.fail(id);

test('the table has every method of every service once', () => {
  const v2 = methodTable(v2Files);
  const declared = v2Files.flatMap(({ services }) => services.flatMap(({ methods }) => methods));
  assert.equal(new Set(v2.map(({ id }) => id)).size, declared.length);
  assert.deepEqual(
    [...new Set(v2.map(({ domain }) => domain))],
    ['iam', 'registry', 'vulnerabilities', 'libraries', 'advisory', 'events', 'ping'],
  );
  assert.equal(new Set(table.map(({ id }) => id)).size, table.length);
  assert.ok(table.some(({ id, domain }) => id === 'wharfinger.access.v1.AccessService/Explain' && domain === 'access'));
});

test('a row has all options of the method', () => {
  const { desc, ...update } = find('iam.v2.GroupsService/UpdateGroup');
  assert.equal(desc.localName, 'updateGroup');
  assert.deepEqual(update, {
    id: 'chainguard.platform.iam.v2.GroupsService/UpdateGroup',
    domain: 'iam',
    isV1: false,
    routes: [{ verb: 'PATCH', template: '/iam/v2/groups/{group.uid=**}', body: 'group' }],
    access: 'scoped',
    requiredToken: undefined,
    handlerCheck: undefined,
    unrestrictedToken: false,
    beforeTerms: false,
    capabilities: [Capability.CAP_IAM_GROUPS_UPDATE],
    scope: ['group', 'uid'],
    event: {
      type: 'dev.chainguard.api.iam.group.updated.v1',
      extensions: ['group'],
      audience: 'customer',
      readableWith: [],
    },
    maxValues: 10_000,
  });
});

test('access is public, scoped or unscoped', () => {
  assert.equal(find('ping.v2.PingService/Ping').access, 'public');
  assert.equal(find('iam.v2.GroupsService/ListGroups').access, 'unscoped');
  assert.deepEqual(find('iam.v2.GroupsService/ListGroups').scope, []);
  // Built-in roles have no group, so the uid is marked but the capabilities are not checked at it.
  assert.equal(find('iam.v2.RolesService/GetRole').access, 'unscoped');
  assert.deepEqual(find('iam.v2.RolesService/GetRole').scope, ['uid']);
  assert.equal(find('iam.v2.IdentitiesService/UpdateIdentityMetadata').event?.audience, 'internal');
});

/** The groups file with its first method, GetGroup, changed. */
function changed(change: (method: MethodOptions, file: FileDescriptorProto) => void): DescFile[] {
  const proto = clone(FileDescriptorProtoSchema, groups.proto);
  change(proto.service[0]?.method[0]?.options ?? assert.fail(), proto);
  const dependencies = new Map(groups.dependencies.map((file) => [file.proto.name, file]));
  const registry = createFileRegistry(proto, (name) => dependencies.get(name));
  return [registry.getFile(proto.name) ?? assert.fail()];
}

const GET_GROUP = 'contract: chainguard.platform.iam.v2.GroupsService/GetGroup';
const refuses = (change: Parameters<typeof changed>[0], message: string) =>
  assert.throws(() => methodTable(changed(change)), { message });

const messageIn = (file: FileDescriptorProto, name: string): DescriptorProto =>
  file.messageType.find((message) => message.name === name) ?? assert.fail();
const uidOf = (fields: readonly FieldDescriptorProto[]): FieldDescriptorProto =>
  fields.find(({ name }) => name === 'uid') ?? assert.fail();
const unmark = ({ options: marked }: FieldDescriptorProto) => clearExtension(marked ?? assert.fail(), options.scope);

test('an incomplete contract is refused, and the error names the method', () => {
  refuses((method) => clearExtension(method, http), `${GET_GROUP} has no google.api.http route`);
  refuses(
    (method) => clearExtension(method, options.access),
    `${GET_GROUP} has no wharfinger.options.v1.access option`,
  );
  refuses(
    (method) => setExtension(method, http, create(HttpRuleSchema)),
    `${GET_GROUP} has a google.api.http binding with a verb that is not supported`,
  );
  refuses(
    (method) => setExtension(method, options.access, create(options.AccessSchema, { public: true, unscoped: true })),
    `${GET_GROUP} is public and yet requires capabilities`,
  );
  refuses(
    (_, file) => unmark(uidOf(messageIn(file, 'GetGroupRequest').field)),
    `${GET_GROUP} is checked at a scope, but chainguard.platform.iam.v2.GetGroupRequest marks no field with wharfinger.options.v1.scope`,
  );
  refuses((_, file) => {
    const { field } = messageIn(file, 'GetGroupRequest');
    field.push(Object.assign(clone(FieldDescriptorProtoSchema, uidOf(field)), { name: 'other', number: 2 }));
  }, 'contract: chainguard.platform.iam.v2.GetGroupRequest marks both uid and other as scope');
  refuses(
    (_, file) => unmark(uidOf(messageIn(file, 'Group').field)),
    'contract: chainguard.platform.iam.v2.UpdateGroupRequest.group is marked as scope but contains no uid',
  );
  refuses(
    (method) => setExtension(method, options.event, create(options.EventSchema, { type: 'x' })),
    `${GET_GROUP} has event x without an audience`,
  );
  refuses(
    (method) => setExtension(method, options.event, create(options.EventSchema)),
    `${GET_GROUP} has an event without a type`,
  );
  refuses((_, file) => {
    const method = file.service[0]?.method[0] ?? assert.fail();
    method.serverStreaming = true;
  }, `${GET_GROUP} streams; only unary methods are served`);
});

test('additional bindings are routes too', () => {
  const [method] = methodTable(
    changed((method) =>
      setExtension(
        method,
        http,
        create(HttpRuleSchema, {
          pattern: { case: 'get', value: '/a/{uid}' },
          additionalBindings: [{ pattern: { case: 'post', value: '/b/{uid}' }, body: '*' }],
        }),
      ),
    ),
  );
  assert.deepEqual(method?.routes, [
    { verb: 'GET', template: '/a/{uid}', body: undefined },
    { verb: 'POST', template: '/b/{uid}', body: '*' },
  ]);
});
