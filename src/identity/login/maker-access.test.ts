import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { databases, temporaryStore } from '../../../test/support/databases.ts';
import { createCaller } from '../../access/create-caller.ts';
import { createGrantCache } from '../../access/grant-cache.ts';
import { newUid, ROOT, type Uid } from '../../base/uid.ts';
import { capabilitySetOf } from '../../contract/capabilities.ts';
import { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';
import { ExternalGroupRoleMappingSchema } from '../../contract/gen/chainguard/platform/iam/v2/external_group_role_mappings_pb.js';
import { IdentitySchema } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { IdentityProviderSchema } from '../../contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { RoleBindingSchema } from '../../contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { encodeMaker, type MakerAccess } from '../../domains/events/maker.ts';
import { identities } from '../../domains/iam/identities/identities.ts';
import { externalGroupRoleMappings } from '../../domains/iam/identity-providers/external-group-role-mappings.ts';
import { identityProviders } from '../../domains/iam/identity-providers/identity-providers.ts';
import { builtinRoles } from '../../domains/iam/roles/builtin-roles.ts';
import { roleBindings } from '../../domains/iam/roles/role-bindings.ts';
import { bumpAccessVersion } from '../../resource/access-version.ts';
import type { CallerLogin } from '../../resource/caller.ts';
import { insert } from '../../resource/write.ts';
import type { Store } from '../../store/store.ts';
import { createMakerAccess } from './maker-access.ts';

const NOW = Date.UTC(2026, 0, 1);
const CREATE = [Capability.CAP_EVENTS_SUBSCRIPTION_CREATE];
const LIST = [Capability.CAP_IAM_IDENTITY_LIST];
const editor = builtinRoles.find(({ name }) => name === 'editor')?.uid ?? '';

for (const database of databases) {
  describe(`the access of makers on ${database.name}`, () => {
    let store: Store;
    let accessOf: MakerAccess;
    before(async () => {
      store = await temporaryStore(database);
      accessOf = createMakerAccess({ db: store.reader, grantCache: createGrantCache(store.reader) });
    });
    after(() => store.close());

    const newPerson = async (): Promise<Uid> => {
      const uid = newUid(ROOT);
      const message = create(IdentitySchema, { name: uid });
      await store.write((tx) => insert(tx, identities, { message, uid, parent: ROOT }, NOW));
      return uid;
    };
    const bindEditor = async (identityUid: Uid): Promise<Uid> => {
      const group = newUid(ROOT);
      const message = create(RoleBindingSchema, { identityUid, roleUid: editor });
      await store.write((tx) => insert(tx, roleBindings, { message, uid: newUid(group), parent: group }, NOW));
      return group;
    };
    const maker = (uid: Uid, login?: CallerLogin, since = NOW): string =>
      encodeMaker(createCaller(uid, undefined, [], { login }), since);
    const remove = (kind: string, uid: Uid) =>
      store.write(async (tx) => {
        await tx.run('DELETE FROM resource WHERE kind = $1 AND uid = $2', kind, uid);
        bumpAccessVersion(tx);
      });

    test('a maker has the access of its role bindings, within the restrictions of its token', async () => {
      const person = await newPerson();
      const group = await bindEditor(person);
      const other = await bindEditor(person);
      const full = await accessOf(maker(person));
      assert.ok(full?.can(CREATE, group) && full.can(LIST, group) && full.can(LIST, other));
      const restricted = await accessOf(maker(person, { scopes: [group], capabilities: capabilitySetOf(CREATE) }));
      assert.ok(restricted?.can(CREATE, group));
      assert.ok(!restricted?.can(LIST, group) && !restricted?.can(CREATE, other));
    });

    test('a maker that was deleted has none, also after the person has registered again', async () => {
      const person = await newPerson();
      const stored = maker(person);
      const earlier = maker(person, undefined, NOW - 86_400_000);
      assert.ok(await accessOf(stored));
      assert.equal(await accessOf(earlier), undefined);
      await remove(identities.kind, person);
      assert.equal(await accessOf(stored), undefined);
    });

    test('a maker that logged in through a provider has the access of its groups there, until either is deleted', async () => {
      const person = await newPerson();
      const group = newUid(ROOT);
      const provider = newUid(group);
      const mapping = newUid(provider);
      await store.write(async (tx) => {
        const message = create(IdentityProviderSchema, { name: 'provider' });
        await insert(tx, identityProviders, { message, uid: provider, parent: group }, NOW);
        const mapped = { identityProviderUid: provider, externalGroupId: 'harbour', roleUid: editor, scope: group };
        const mappingMessage = create(ExternalGroupRoleMappingSchema, mapped);
        await insert(tx, externalGroupRoleMappings, { message: mappingMessage, uid: mapping, parent: provider }, NOW);
      });
      const member = maker(person, { provider: { uid: provider, groups: ['harbour'] } });
      assert.ok((await accessOf(member))?.can(CREATE, group));
      assert.ok(!(await accessOf(maker(person)))?.can(CREATE, group));
      await remove(externalGroupRoleMappings.kind, mapping);
      assert.ok(!(await accessOf(member))?.can(CREATE, group));
      await remove(identityProviders.kind, provider);
      assert.equal(await accessOf(member), undefined);
    });
  });
}
