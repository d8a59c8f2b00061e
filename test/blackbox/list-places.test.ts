import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DescMessage } from '@bufbuild/protobuf';
import { Code } from '../../src/base/errors.ts';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentityProvidersService } from '../../src/contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { v2Files, wharfingerFiles } from '../../src/contract/gen/files.js';
import { methodTable } from '../../src/contract/method-table.ts';
import { v2beta1Id } from '../../src/contract/v2beta1.ts';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { builtinRoleUid, callerWithoutRole, callerWithRole } from '../support/callers.ts';
import { rejects } from '../support/rejects.ts';
import type { CallError } from '../support/wires.ts';

const lists = methodTable([...v2Files, ...wharfingerFiles]).filter(({ desc }) => desc.name.startsWith('List'));

/** Lists that name no place, or whose scope the pipeline checks. */
const WITHOUT_PLACES = [
  'ListTermsAcceptances',
  'ListArtifacts',
  'ListDocuments',
  'ListVulnerabilityMetadata',
  'ListSessions',
  'ListDeliveries',
];
/** Lists with public records: everybody can call them. */
const PUBLIC = ['ListRoles', 'ListDocuments', 'ListVulnerabilityMetadata', 'ListSessions'];

const time = { seconds: 1_767_268_800n };

/** Returns the requests that name a place, with the name of the filter. */
function placeRequests(name: string, input: DescMessage, uid: string): [filter: string, request: object][] {
  if (name === 'ListResolvedVulnsReports') {
    return [['image_refs', { imageRefs: [{ repo: uid }], startTime: time, endTime: time }]];
  }
  return input.fields.flatMap(({ name: field, localName, message }): [string, object][] => {
    if (message?.typeName.endsWith('.UIDPFilter')) {
      return ['childrenOf', 'descendantsOf', 'ancestorsOf'].map((filter) => [filter, { uidp: { [filter]: uid } }]);
    }
    return ['group', 'identity_provider_uid', 'artifact_id'].includes(field) ? [[field, { [localName]: uid }]] : [];
  });
}

/** An error without what differs between any two calls, and without the uid that the request names. */
const comparable = ({ code, message, details }: CallError, uid: string): string =>
  JSON.stringify([
    code,
    message,
    details.filter((detail) => !String(detail['@type']).endsWith('RequestInfo')),
  ]).replaceAll(uid, '<uid>');

onEveryDatabaseAndWire('places of v2 lists', (fixture) => {
  const named = lists.filter(({ desc }) => !WITHOUT_PLACES.includes(desc.name));

  test('a place that does not exist and one of another organization get the same NOT_FOUND', async () => {
    const owned = await fixture.newGroup();
    const { uid: foreign } = await fixture.api.call(GroupsService.method.createGroup, {
      group: { name: `foreign ${fixture.wire}`.toLowerCase() },
    });
    const repo = { name: 'app' };
    const { uid: foreignRepo } = await fixture.api.call(ReposService.method.createRepo, { parent: foreign, repo });
    const token = await (await callerWithRole(fixture.server, 'owner', owned)).token();
    const owner = fixture.as(token);
    let requests = 0;
    for (const { id, desc, access } of named) {
      if (access === 'server') continue;
      const uids = { foreign, foreignRepo, missing: 'f'.repeat(40), missingInside: `${owned}/${'0'.repeat(16)}` };
      const errors: Record<string, Record<string, string>> = {};
      for (const [what, uid] of Object.entries(uids)) {
        for (const [filter, request] of placeRequests(desc.name, desc.input, uid)) {
          const label = `${desc.name} ${filter} ${what}`;
          const error = await rejects(owner.call(desc, request as never), Code.NOT_FOUND).catch((failure) =>
            assert.fail(`${label}: ${failure}`),
          );
          const info = error.detail('ResourceInfo');
          assert.equal(info?.resourceName, uid, label);
          assert.ok(info?.resourceType, label);
          errors[filter] = { ...errors[filter], [what]: comparable(error, uid) };
          const formerId = v2beta1Id(id);
          if (formerId && what === 'foreign') {
            const former = await rejects(owner.call(desc, request as never, { token, id: formerId }), Code.NOT_FOUND);
            assert.equal(comparable(former, uid), comparable(error, uid), label);
          }
          requests++;
        }
      }
      for (const [filter, byPlace] of Object.entries(errors)) {
        assert.equal(byPlace.foreign, byPlace.missing, `${desc.name} ${filter}`);
        assert.equal(byPlace.foreignRepo, byPlace.missingInside, `${desc.name} ${filter}`);
      }
    }
    assert.ok(requests > 120, `${requests} requests`);
  });

  test('an existing place with nothing in it is an empty list, and unknown ids are left out', async () => {
    const group = await fixture.newGroup();
    const { uid: repo } = await fixture.api.call(ReposService.method.createRepo, {
      parent: group,
      repo: { name: 'a' },
    });
    const { uid: provider } = await fixture.api.call(IdentityProvidersService.method.createIdentityProvider, {
      parent: fixture.org,
      identityProvider: {
        name: `idp ${fixture.wire}`.toLowerCase(),
        defaultRole: builtinRoleUid('viewer'),
        configuration: {
          case: 'oidc',
          value: { issuer: 'https://issuer.example.com', clientId: 'a', clientSecret: 'b' },
        },
      },
    });
    const empty = await fixture.newGroup(group);
    for (const { desc } of named.filter(({ desc }) => desc.input.field.uidp)) {
      const items = desc.output.fields.find(({ fieldKind }) => fieldKind === 'list') ?? assert.fail(desc.name);
      const places = [{ childrenOf: empty }, { descendantsOf: empty }, { childrenOf: empty, descendantsOf: group }];
      const ids = { ids: [`${empty}/${'0'.repeat(16)}`, 'f'.repeat(40)] };
      for (const uidp of [...places, ids]) {
        const response = await fixture.api.call(desc, { uidp } as never);
        const label = `${desc.name} ${JSON.stringify(uidp)}`;
        assert.deepEqual((response as unknown as Record<string, unknown>)[items.localName], [], label);
      }
      // A list of ancestors of something that exists is no error, whatever its kind.
      for (const ancestorsOf of [empty, repo, provider])
        await fixture.api.call(desc, { uidp: { ancestorsOf } } as never);
    }
    const { groups } = await fixture.api.call(GroupsService.method.listGroups, {
      uidp: { ids: [group, 'f'.repeat(40), `${group}/${'0'.repeat(16)}`] },
    });
    assert.deepEqual(
      groups.map(({ uid }) => uid),
      [group],
    );
  });

  test('a caller without a grant to list a kind is denied, and one with a grant below a place is not', async () => {
    const group = await fixture.newGroup();
    const below = await fixture.newGroup(group);
    const nothing = fixture.as(await (await callerWithoutRole(fixture.server, group)).token());
    for (const { desc, access } of lists) {
      if (access === 'server' || PUBLIC.includes(desc.name)) continue;
      const uid = desc.name === 'ListArtifactVersions' ? { artifactId: `${group}/${'0'.repeat(16)}` } : {};
      const request = {
        ...uid,
        ...(desc.name === 'ListArtifacts' && { ecosystems: [1] }),
        ...(desc.name === 'ListTermsAcceptances' && { group }),
        ...(desc.name === 'ListDeliveries' && { parent: group }),
        ...(desc.name === 'ListResolvedVulnsReports' && { imageRefs: [{ repo: 'a' }], startTime: time, endTime: time }),
      };
      await rejects(nothing.call(desc, request as never), Code.PERMISSION_DENIED).catch((failure) =>
        assert.fail(`${desc.name}: ${failure}`),
      );
    }
    const viewer = fixture.as(await (await callerWithRole(fixture.server, 'viewer', below)).token());
    const { groups } = await viewer.call(GroupsService.method.listGroups, { uidp: { descendantsOf: group } });
    assert.deepEqual(
      groups.map(({ uid }) => uid),
      [below],
    );
  });
});
