import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code } from '../../src/base/errors.ts';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService } from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { RolesService } from '../../src/contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { TagsService } from '../../src/contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import { AdvisoriesService } from '../../src/contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { AdvisoryImportsService } from '../../src/contract/gen/wharfinger/imports/v1/advisories_pb.js';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { rejects } from '../support/rejects.ts';

const repos = ReposService.method;
const { listTags } = TagsService.method;
const identities = IdentitiesService.method;
const { listRoles } = RolesService.method;
const bindings = RoleBindingsService.method;
const advisories = AdvisoriesService.method;
const groups = GroupsService.method;
const VIEWER = '63921b2c44617e3f2603851537be0123af4a57d7';

/** The operations table of section 4 of the specification, from top to bottom, and the rules of section 7. */
onEveryDatabaseAndWire('the specification', (fixture) => {
  test('section 4: repos and tags', async () => {
    const { api } = fixture;
    const parent = await fixture.newGroup();
    const made = await api.call(repos.createRepo, { parent, repo: { name: 'nginx', description: 'a web server' } });
    await api.call(repos.createRepo, { parent, repo: { name: 'redis' } });

    const uidp = { descendantsOf: parent };
    const { repos: named, totalCount } = await api.call(repos.listRepos, { uidp, name: 'nginx' });
    assert.deepEqual(named, [made]);
    assert.equal(totalCount, 1n);
    const descending = await api.call(repos.listRepos, { uidp, orderBy: 'name desc', pageSize: 1 });
    assert.deepEqual(
      descending.repos.map(({ name }) => name),
      ['redis'],
    );
    assert.equal(descending.totalCount, 2n);
    const next = { uidp, orderBy: 'name desc', pageSize: 1, pageToken: descending.nextPageToken };
    assert.deepEqual((await api.call(repos.listRepos, next)).repos, [made]);
    const skipped = await api.call(repos.listRepos, { uidp, orderBy: 'created_at', skip: 1 });
    assert.deepEqual([skipped.repos.length, skipped.skipped, skipped.nextPageToken], [1, 1, '']);

    assert.deepEqual(await api.call(repos.getRepo, { uid: made.uid }), made);

    const { uid } = made;
    const masked = await api.call(repos.updateRepo, {
      repo: { uid, description: 'changed', name: 'ignored' },
      updateMask: { paths: ['description'] },
    });
    assert.deepEqual([masked.uid, masked.name, masked.description], [uid, 'nginx', 'changed']);
    const bare = await api.call(repos.updateRepo, { repo: { uid, name: 'nginx-2' } });
    assert.deepEqual([bare.name, bare.description], ['nginx-2', 'changed']);
    const replaced = await api.call(repos.updateRepo, { repo: { uid, name: 'nginx-3' }, updateMask: { paths: ['*'] } });
    assert.deepEqual([replaced.name, replaced.description], ['nginx-3', '']);

    assert.deepEqual((await api.call(listTags, { uidp: { childrenOf: uid } })).tags, []);

    await api.call(repos.deleteRepo, { uid });
    await rejects(api.call(repos.getRepo, { uid }), Code.NOT_FOUND);
  });

  test('section 4: identities, roles and role bindings', async () => {
    const { api } = fixture;
    const parent = await fixture.newGroup();
    const value = {
      iss: { case: 'issuer' as const, value: 'https://issuer.example.com' },
      sub: { case: 'subject' as const, value: 'robot' },
    };
    const relationship = { case: 'claimMatch' as const, value };
    const identity = await api.call(identities.createIdentity, {
      parent,
      identity: { name: 'robot', description: 'a machine', relationship },
    });
    assert.ok(identity.uid.startsWith(`${parent}/`));
    assert.ok(identity.lastSeenTime && identity.createTime && identity.updateTime);

    const { roles } = await api.call(listRoles, { name: 'viewer' });
    const viewer = roles.find(({ uid }) => uid === VIEWER) ?? assert.fail('there is no role named viewer');

    const roleBinding = { identityUid: identity.uid, roleUid: viewer.uid };
    const binding = await api.call(bindings.createRoleBinding, { parent, roleBinding });
    const { uid, name, description } = identity;
    const issuer = 'https://issuer.example.com';
    assert.partialDeepStrictEqual(binding.identity, { uid, name, description, subject: 'robot', issuer });
    assert.equal(binding.group?.uid, parent);
    assert.partialDeepStrictEqual(binding.role, { uid: VIEWER, name: 'viewer', description: 'Viewer Role (built-in)' });
    assert.ok(binding.createTime);

    await api.call(bindings.deleteRoleBinding, { uid: binding.uid });
    await api.call(identities.deleteIdentity, { uid });
  });

  test('section 4: advisories', async () => {
    const { api } = fixture;
    const group = await fixture.newGroup();
    const names = ['openssl', 'zlib', 'curl'];
    const imported = names.map((name) => ({
      artifactName: name,
      artifactType: 'apk',
      author: 'us',
      componentName: name,
    }));
    await api.call(AdvisoryImportsService.method.importAdvisories, { parent: group, advisories: imported });
    const uidp = { descendantsOf: group };
    const all = await api.call(advisories.listAdvisories, { uidp });
    assert.equal(all.totalCount, 3n);
    for (const { advisoryId } of all.advisories) assert.match(advisoryId, /^CGA-\w{4}-\w{4}-\w{4}$/);
    const named = await api.call(advisories.listAdvisories, { uidp, artifactNames: ['openssl', 'curl'] });
    assert.deepEqual(named.advisories.map((advisory) => advisory.artifactName).sort(), ['curl', 'openssl']);
    const [first] = named.advisories;
    assert.ok(first?.updateTime);
    const byId = await api.call(advisories.listAdvisories, { advisoryIds: [first.advisoryId] });
    assert.deepEqual(byId.advisories, [first]);
    assert.deepEqual(await api.call(advisories.getAdvisory, { uid: first.uid }), first);
  });

  test('section 7: errors', async () => {
    const { api } = fixture;
    const parent = await fixture.newGroup();
    // Rule 1.
    for (const identity of [{}, { name: 'Not A Name' }]) {
      const error = await rejects(api.call(identities.createIdentity, { parent, identity }), Code.INVALID_ARGUMENT);
      assert.deepEqual(error.fields, ['name']);
      assert.equal(error.detail('ErrorInfo')?.reason, 'INVALID_ARGUMENT');
      assert.match(error.message, /^Invalid argument: name: /);
    }
    // Rule 2, for every kind of child.
    await api.call(repos.createRepo, { parent, repo: { name: 'repo' } });
    const full = await rejects(api.call(groups.deleteGroup, { uid: parent }), Code.FAILED_PRECONDITION);
    assert.equal(full.detail('ErrorInfo')?.reason, 'FAILED_PRECONDITION');
    assert.match(full.message, /cannot delete group with child repos/);
    const subject = parent;
    const description = 'cannot delete group with child repos';
    const violations = [{ type: 'RESOURCE_NOT_EMPTY', subject, description }];
    assert.deepEqual(full.detail('PreconditionFailure')?.violations, violations);
    // Rule 3.
    const uid = `${parent}/${'0'.repeat(16)}`;
    for (const missing of [
      () => api.call(groups.getGroup, { uid }),
      () => api.call(identities.getIdentity, { uid }),
      () => api.call(repos.getRepo, { uid }),
      () => api.call(advisories.getAdvisory, { uid }),
    ]) {
      const error = await rejects(missing(), Code.NOT_FOUND);
      assert.equal(error.detail('ResourceInfo')?.resourceName, uid);
    }
  });
});
