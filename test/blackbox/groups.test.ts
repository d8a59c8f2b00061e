import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { Code } from '../../src/base/errors.ts';
import { GroupsService, OrgKind, OrgStatus } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { PingService } from '../../src/contract/gen/chainguard/platform/ping/v2/ping_pb.js';
import { Auth } from '../../src/contract/gen/platform/auth/v1/auth.platform_pb.js';
import { Groups as V1Groups } from '../../src/contract/gen/platform/iam/v1/group.platform_pb.js';
import { callerWithRole } from '../support/callers.ts';
import { databases } from '../support/databases.ts';
import { rejects } from '../support/rejects.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { type Client, wires } from '../support/wires.ts';

const { createGroup, getGroup, listGroups, updateGroup, deleteGroup } = GroupsService.method;

for (const database of databases) {
  describe(`groups on ${database.name}`, () => {
    let server: TestServer;
    before(async () => {
      server = await startTestServer(database);
    });
    after(() => server.remove());

    for (const wire of wires) {
      describe(`over ${wire.name}`, () => suite(wire.name.toLowerCase(), () => wire.connect(server.url, server.token)));
    }

    function suite(prefix: string, connect: () => Client): void {
      let api: Client;
      let org: string;
      before(() => {
        api = connect();
        org = server.organization;
      });
      after(() => api.close());

      const make = (name: string, parent = org) =>
        api.call(createGroup, { parent, group: { name: `${prefix} ${name}` } });

      test('ping needs no token', async () => {
        assert.equal((await api.call(PingService.method.ping, {}, {})).response, 'pong');
      });

      test('a created group can be read, listed, changed and deleted', async () => {
        const group = await api.call(createGroup, {
          parent: org,
          group: { name: `${prefix} life`, description: 'first', uid: 'ignored' },
        });
        assert.match(group.uid, new RegExp(`^${org}/[0-9a-f]{16}$`));
        assert.ok(group.createTime && group.updateTime);
        assert.deepEqual(group.createTime, group.updateTime);
        assert.deepEqual(await api.call(getGroup, { uid: group.uid }), group);

        const { groups } = await api.call(listGroups, { name: `${prefix} life` });
        assert.deepEqual(groups, [group]);

        const changed = await api.call(updateGroup, {
          group: { uid: group.uid, name: `${prefix} renamed`, description: 'not in the mask' },
          updateMask: { paths: ['name'] },
        });
        assert.equal(changed.name, `${prefix} renamed`);
        assert.equal(changed.description, 'first');
        assert.deepEqual(changed.createTime, group.createTime);
        assert.ok(changed.updateTime && timestampMs(changed.updateTime) >= timestampMs(group.createTime));
        assert.deepEqual((await api.call(listGroups, { name: `${prefix} life` })).groups, []);
        assert.deepEqual((await api.call(listGroups, { name: `${prefix} renamed` })).groups, [changed]);

        await api.call(deleteGroup, { uid: group.uid });
        await rejects(api.call(getGroup, { uid: group.uid }), Code.NOT_FOUND, (error) => {
          assert.equal(error.detail('ResourceInfo')?.resourceName, group.uid);
          assert.equal(error.detail('ErrorInfo')?.domain, 'iam.wharfinger.dev');
        });
        await rejects(api.call(deleteGroup, { uid: group.uid }), Code.NOT_FOUND);
      });

      test('an update without a mask changes the fields that are set', async () => {
        const { uid } = await api.call(createGroup, {
          parent: org,
          group: { name: `${prefix} bare`, description: 'd' },
        });
        const changed = await api.call(updateGroup, { group: { uid, name: `${prefix} bare 2` } });
        assert.equal(changed.name, `${prefix} bare 2`);
        assert.equal(changed.description, 'd');
      });

      test('an update with the mask * replaces all fields', async () => {
        const { uid } = await api.call(createGroup, {
          parent: org,
          group: { name: `${prefix} star`, description: 'd' },
        });
        const changed = await api.call(updateGroup, {
          group: { uid, name: `${prefix} star 2` },
          updateMask: { paths: ['*'] },
        });
        assert.equal(changed.description, '');
        const error = await rejects(
          api.call(updateGroup, { group: { uid, description: 'x' }, updateMask: { paths: ['*'] } }),
          Code.INVALID_ARGUMENT,
        );
        assert.deepEqual(error.fields, ['name']);
      });

      test('masks ignore output-only fields and refuse unknown ones', async () => {
        const group = await make('masks');
        const same = await api.call(updateGroup, {
          group: { uid: group.uid, status: OrgStatus.SUSPENDED },
          updateMask: { paths: ['status', 'create_time'] },
        });
        assert.equal(same.status, group.status);
        const error = await rejects(
          api.call(updateGroup, { group: { uid: group.uid }, updateMask: { paths: ['color'] } }),
          Code.INVALID_ARGUMENT,
        );
        assert.deepEqual(error.fields, ['update_mask']);
      });

      test('kind and status are those of the organization, and a verified organization needs a kind', async () => {
        const name = `${prefix} kinds`;
        for (const group of [
          { name, verified: true },
          { name, verified: true, kind: OrgKind.UNSPECIFIED },
        ]) {
          assert.deepEqual((await rejects(api.call(createGroup, { group }), Code.INVALID_ARGUMENT)).fields, ['kind']);
          const v1 = api.call(V1Groups.method.create, { group });
          assert.deepEqual((await rejects(v1, Code.INVALID_ARGUMENT)).fields, ['kind']);
        }
        const { uid } = await api.call(createGroup, { group: { name } });
        const update = (group: object, ...paths: string[]) =>
          api.call(updateGroup, { group: { uid, ...group }, updateMask: { paths } });
        assert.deepEqual((await rejects(update({ verified: true }, 'verified'), Code.INVALID_ARGUMENT)).fields, [
          'kind',
        ]);
        const child = await api.call(createGroup, { parent: uid, group: { name: 'child' } });
        assert.deepEqual([child.kind, child.status], [OrgKind.UNSPECIFIED, OrgStatus.READY]);
        await update({ verified: true, kind: OrgKind.DEV }, 'verified', 'kind');
        const refused = await rejects(update({ kind: OrgKind.UNSPECIFIED }, 'kind'), Code.INVALID_ARGUMENT);
        assert.deepEqual(refused.fields, ['kind']);
        // Clients of v1 that do not know the kind keep it.
        const put = await api.call(V1Groups.method.update, { id: uid, name, verified: true, description: 'put' });
        assert.deepEqual([put.kind, put.description], [OrgKind.DEV, 'put']);

        const read = await api.call(getGroup, { uid: child.uid });
        assert.deepEqual([read.kind, read.status], [OrgKind.DEV, OrgStatus.READY]);
        const { groups } = await api.call(listGroups, { uidp: { descendantsOf: uid } });
        assert.ok(groups.every((group) => group.kind === OrgKind.DEV && group.status === OrgStatus.READY));
        const [v1] = (await api.call(V1Groups.method.list, { id: child.uid })).items;
        assert.deepEqual([v1?.kind, v1?.status], [OrgKind.DEV, OrgStatus.READY]);
        // What was read can be sent back, and nothing else.
        const echoed = await api.call(updateGroup, { group: { ...read, description: 'echo' } });
        assert.deepEqual([echoed.kind, echoed.description], [OrgKind.DEV, 'echo']);
        const second = await api.call(createGroup, { parent: child.uid, group: { name: 'second', kind: OrgKind.DEV } });
        assert.equal(second.kind, OrgKind.DEV);
        const other = { group: { uid: child.uid, kind: OrgKind.INFRA }, updateMask: { paths: ['kind'] } };
        assert.deepEqual((await rejects(api.call(updateGroup, other), Code.INVALID_ARGUMENT)).fields, ['kind']);
        const infra = api.call(createGroup, { parent: uid, group: { name: 'infra', kind: OrgKind.INFRA } });
        assert.deepEqual((await rejects(infra, Code.INVALID_ARGUMENT)).fields, ['kind']);
        await update({ kind: OrgKind.INFRA }, 'kind');
        assert.equal((await api.call(getGroup, { uid: second.uid })).kind, OrgKind.INFRA);
      });

      test('the creator of an organization has access to it immediately', async () => {
        const root = await api.call(createGroup, { group: { name: `${prefix} organization` } });
        assert.match(root.uid, /^[0-9a-f]{40}$/);
        assert.equal(root.status, OrgStatus.READY);
        assert.deepEqual(await api.call(getGroup, { uid: root.uid }), root);
        const { groups } = await api.call(listGroups, { uidp: { inRoot: true } });
        assert.ok(groups.some(({ uid }) => uid === root.uid));
        assert.ok(groups.every(({ uid }) => !uid.includes('/')));
        // The binding of its creator does not prevent the deletion.
        await api.call(deleteGroup, { uid: root.uid });
        await rejects(api.call(getGroup, { uid: root.uid }), Code.NOT_FOUND);
      });

      test('the five hierarchy filters find nested groups, and a group with children cannot be deleted', async () => {
        const a = await make('a');
        const b = await make('b', a.uid);
        const c = await make('c', b.uid);
        const list = async (uidp: object) => (await api.call(listGroups, { uidp })).groups.map(({ uid }) => uid);
        assert.deepEqual(await list({ descendantsOf: a.uid }), [b.uid, c.uid]);
        assert.deepEqual(await list({ childrenOf: a.uid }), [b.uid]);
        assert.deepEqual(await list({ ancestorsOf: c.uid }), [org, a.uid, b.uid]);
        assert.deepEqual(await list({ ids: [c.uid, a.uid] }), [a.uid, c.uid]);
        assert.ok((await list({ inRoot: true })).includes(org));

        const error = await rejects(api.call(deleteGroup, { uid: a.uid }), Code.FAILED_PRECONDITION);
        assert.equal(error.message, 'Precondition failed: cannot delete group with child groups');
        assert.deepEqual(error.detail('PreconditionFailure')?.violations, [
          { type: 'RESOURCE_NOT_EMPTY', subject: a.uid, description: 'cannot delete group with child groups' },
        ]);
        for (const { uid } of [c, b, a]) await api.call(deleteGroup, { uid });
      });

      test('a parent can be given by the suffix of its uid or by its name', async () => {
        const parent = await make('parent');
        const bySuffix = await make('by suffix', parent.uid.slice(-16));
        const byName = await make('by name', parent.name);
        assert.ok(bySuffix.uid.startsWith(`${parent.uid}/`));
        assert.ok(byName.uid.startsWith(`${parent.uid}/`));
        await rejects(make('lost', 'no such group'), Code.NOT_FOUND);
        await make('twin');
        await make('twin', parent.uid);
        assert.deepEqual((await rejects(make('x of twin', `${prefix} twin`), Code.INVALID_ARGUMENT)).fields, [
          'parent',
        ]);
      });

      test('siblings cannot have the same name', async () => {
        const first = await make('sibling');
        await rejects(make('sibling'), Code.ALREADY_EXISTS);
        const second = await make('sibling 2');
        await rejects(api.call(updateGroup, { group: { uid: second.uid, name: first.name } }), Code.ALREADY_EXISTS);
        // The name of a deleted group can be used again.
        await api.call(deleteGroup, { uid: first.uid });
        await api.call(updateGroup, { group: { uid: second.uid, name: first.name } });
      });

      test('validation errors name the invalid field', async () => {
        const bad = async (group: object, field: string) => {
          const error = await rejects(api.call(createGroup, { parent: org, group }), Code.INVALID_ARGUMENT);
          assert.deepEqual(error.fields, [field]);
          assert.match(error.message, new RegExp(`^Invalid argument: ${field}: `));
          assert.equal(error.detail('ErrorInfo')?.reason, 'INVALID_ARGUMENT');
        };
        await bad({}, 'name');
        await bad({ name: 'ab' }, 'name');
        await bad({ name: 'Upper' }, 'name');
        await bad({ name: 'a'.repeat(64) }, 'name');
        await bad({ name: 'x'.repeat(1024 * 1024) }, 'name');
        await bad({ name: 'fine', description: 'two\nlines' }, 'description');
        await bad({ name: 'fine', description: 'x'.repeat(513) }, 'description');
      });

      test('validation errors name the invalid list parameter', async () => {
        const field = async (request: object) =>
          (await rejects(api.call(listGroups, request), Code.INVALID_ARGUMENT)).fields;
        assert.deepEqual(await field({ pageSize: -1 }), ['page_size']);
        assert.deepEqual(await field({ skip: -1 }), ['skip']);
        assert.deepEqual(await field({ orderBy: 'name; DROP TABLE resource' }), ['order_by']);
        assert.deepEqual(await field({ pageToken: 'forged' }), ['page_token']);
        assert.deepEqual(await field({ uidp: { childrenOf: '../etc' } }), ['uidp.children_of']);
        assert.deepEqual(await field({ uidp: { ids: ['x'] } }), ['uidp.ids[0]']);
      });

      test('page_size above 200 becomes 200, and 0 means 50', async () => {
        const { uid } = await make('many');
        await Promise.all(Array.from({ length: 60 }, (_, i) => make(`many ${i}`, uid)));
        const uidp = { childrenOf: uid };
        const first = await api.call(listGroups, { uidp });
        assert.equal(first.groups.length, 50);
        assert.equal(first.totalCount, 60n);
        assert.notEqual(first.nextPageToken, '');
        const whole = await api.call(listGroups, { uidp, pageSize: 100_000 });
        assert.equal(whole.groups.length, 60);
        assert.equal(whole.nextPageToken, '');
      });

      test('a page token is rejected for another query', async () => {
        const { nextPageToken } = await api.call(listGroups, { pageSize: 1 });
        const other = { pageSize: 1, orderBy: 'name', pageToken: nextPageToken };
        assert.deepEqual((await rejects(api.call(listGroups, other), Code.INVALID_ARGUMENT)).fields, ['page_token']);
      });

      test('an invalid uid is refused, and one out of reach is denied', async () => {
        assert.deepEqual((await rejects(api.call(getGroup, { uid: 'nonsense' }), Code.INVALID_ARGUMENT)).fields, [
          'uid',
        ]);
        const uid = 'f'.repeat(40);
        const owner = await callerWithRole(server, 'owner', org);
        await rejects(api.call(getGroup, { uid }, { token: await owner.token() }), Code.PERMISSION_DENIED, (error) => {
          assert.match(error.message, /groups\.list/);
        });
        await rejects(api.call(getGroup, { uid: `${org}/${'0'.repeat(16)}` }), Code.NOT_FOUND);
      });

      test('an operator learns that an organization does not exist', async () => {
        const uid = 'f'.repeat(40);
        const calls = [
          api.call(getGroup, { uid }),
          api.call(getGroup, { uid: `${uid}/${'0'.repeat(16)}` }),
          api.call(deleteGroup, { uid }),
          api.call(updateGroup, { group: { uid, name: 'fine' } }),
        ];
        for (const call of calls) {
          const error = await rejects(call, Code.NOT_FOUND);
          const { resourceType, resourceName } = error.detail('ResourceInfo') ?? {};
          assert.deepEqual([resourceType, resourceName], ['group', uid]);
        }
      });

      test('every request needs a valid token', async () => {
        for (const token of [undefined, '', 'nonsense', 'a.b.c', server.token.slice(0, -4), `${server.token}x`]) {
          await rejects(api.call(listGroups, {}, { token }), Code.UNAUTHENTICATED);
        }
      });

      test('a headless session is refused, because there is no login in a browser', async () => {
        await rejects(api.call(Auth.method.getHeadlessSession), Code.FAILED_PRECONDITION);
      });
    }
  });
}
