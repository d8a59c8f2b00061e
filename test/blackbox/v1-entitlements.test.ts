import assert from 'node:assert/strict';
import { test } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Code } from '../../src/base/errors.ts';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import {
  ReposService,
  CatalogTier as V2CatalogTier,
} from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { CatalogTier } from '../../src/contract/gen/platform/registry/v1/registry.platform_pb.js';
import * as v1 from '../../src/contract/gen/platform/registry/v1/registry_entitlements.platform_pb.js';
import { EntitlementsService } from '../../src/contract/gen/wharfinger/registry/v1/entitlements_pb.js';
import { type ApiFixture, onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { callerWithRole } from '../support/callers.ts';
import { eventsAbout } from '../support/inspect.ts';
import { rejects } from '../support/rejects.ts';

const { method } = v1.Entitlements;
const { createRepo, updateRepo } = ReposService.method;
const { createGroup, deleteGroup } = GroupsService.method;
const DAY = 24 * 3_600_000;
const expired = timestampFromMs(Date.now() - DAY);
const later = timestampFromMs(Date.now() + DAY);

let names = 0;

/** A catalog of another organization with two applications and a base image, whose names no other test uses. */
async function newCatalog({ api }: ApiFixture) {
  const id = ++names;
  const { uid: parent } = await api.call(createGroup, { group: { name: `catalog ${id}` } });
  const add = async (name: string, catalogTier: V2CatalogTier) =>
    api.call(createRepo, { parent, repo: { name: `${name}-${id}`, catalogTier } });
  return {
    one: await add('one', V2CatalogTier.APPLICATION),
    two: await add('two', V2CatalogTier.APPLICATION),
    base: await add('base', V2CatalogTier.BASE),
  };
}

const quota = { APPLICATION: { max: 1 }, base: { max: 5 } };

onEveryDatabaseAndWire('entitlements', (fixture) => {
  const create = (parent: string, entitlement: object) =>
    fixture.api.call(method.createEntitlement, { parent, entitlement });
  const list = async (parent: string) => (await fixture.api.call(method.listEntitlements, { parent })).items;
  const inParent = (parent: string) => ({ entitlement: { case: 'parent' as const, value: parent } });
  const add = (parent: string, imageNames: string[]) =>
    fixture.api.call(method.addEntitlementImages, { ...inParent(parent), imageNames });

  test('an entitlement comes back as it was sent, and can be deleted', async () => {
    const group = await fixture.newGroup();
    const sent = {
      externalId: 'contract 1',
      expirationTime: later,
      type: v1.Entitlement_Type.PRODUCTION,
      quota: { FIPS: { max: 3 } },
      tiers: [CatalogTier.BASE, CatalogTier.AI],
    };
    const created = await create(group, sent);
    const { externalId, expirationTime, type, tiers } = created;
    assert.deepEqual({ externalId, expirationTime, type, tiers, quota: sent.quota }, sent);
    assert.deepEqual([created.quota.FIPS?.max, created.quota.FIPS?.current], [3, 0]);
    assert.ok(created.createTime && created.updateTime);
    assert.deepEqual(await list(group), [created]);
    const stored = await fixture.api.call(EntitlementsService.method.getEntitlement, { uid: created.id });
    assert.deepEqual(stored.tiers, [V2CatalogTier.BASE, V2CatalogTier.AI]);
    await fixture.api.call(method.deleteEntitlement, { id: created.id });
    assert.deepEqual(await list(group), []);
    await rejects(fixture.api.call(method.deleteEntitlement, { id: created.id }), Code.NOT_FOUND);
    await create(group, {});
    await fixture.api.call(deleteGroup, { uid: group });
  });

  test('invalid entitlements are refused, and name the fields of v1', async () => {
    const group = await fixture.newGroup();
    for (const [field, entitlement] of [
      ['external_id', { externalId: 'two\nlines' }],
      ['quota[FIPS].max', { quota: { FIPS: { max: -1 } } }],
      ['quota', { quota: { '': { max: 1 } } }],
      ['tiers[0]', { tiers: [CatalogTier.UNKNOWN] }],
    ] as const) {
      assert.deepEqual((await rejects(create(group, entitlement), Code.INVALID_ARGUMENT)).fields, [field]);
    }
    await rejects(create(`${group}/${'0'.repeat(16)}`, {}), Code.NOT_FOUND);
  });

  test('owners choose images within the quota that an operator has set', async () => {
    const group = await fixture.newGroup();
    const { one, two, base } = await newCatalog(fixture);
    await rejects(add(group, [one.name]), Code.FAILED_PRECONDITION);
    const { id } = await create(group, { quota, type: v1.Entitlement_Type.TRIAL, expirationTime: later });

    const owner = fixture.as(await (await callerWithRole(fixture.server, 'owner', group)).token());
    await rejects(owner.call(method.createEntitlement, { parent: group, entitlement: {} }), Code.PERMISSION_DENIED);
    const invisible = owner.call(method.addEntitlementImages, { ...inParent(group), imageNames: [one.name] });
    assert.deepEqual((await rejects(invisible, Code.INVALID_ARGUMENT)).fields, ['image_names[0]']);

    const added = await add(group, [one.name, base.uid]);
    assert.equal(added.parent, group);
    assert.deepEqual(
      added.images.map((image) => [image.id, image.name, image.catalogTier, image.type, image.expirationTime]),
      [
        [one.uid, one.name, CatalogTier.APPLICATION, v1.Entitlement_Type.TRIAL, later],
        [base.uid, base.name, CatalogTier.BASE, v1.Entitlement_Type.TRIAL, later],
      ],
    );
    const again = await add(group, [one.name]);
    assert.deepEqual(
      again.images.map(({ id }) => id),
      [one.uid],
      'an image that it has is kept',
    );
    const [stored] = await list(group);
    assert.deepEqual([stored?.quota.APPLICATION?.current, stored?.quota.base?.current], [1, 1]);
    await rejects(add(group, [two.name]), Code.RESOURCE_EXHAUSTED);

    const byId = { entitlement: { case: 'id' as const, value: id } };
    if (fixture.wire === 'gRPC') {
      await rejects(owner.call(method.removeEntitlementImages, { ...byId, imageNames: ['no'] }), Code.INVALID_ARGUMENT);
    }
    const swap = { removeImageNames: [one.name], addImageNames: [two.name] };
    const swapped = await fixture.api.call(method.swapEntitlementImages, { ...inParent(group), ...swap });
    assert.deepEqual([swapped.removed[0]?.id, swapped.added[0]?.id, swapped.parent], [one.uid, two.uid, group]);
    await owner.call(method.removeEntitlementImages, { ...inParent(group), imageNames: [base.name] });
    for (const parent of [group, id]) {
      const { images } = await fixture.api.call(method.listEntitlementImages, { parent });
      assert.deepEqual(
        images.map(({ id, name, tier }) => [id, name, tier]),
        [[two.uid, two.name, CatalogTier.APPLICATION]],
      );
    }
    const missing = owner.call(method.removeEntitlementImages, { ...inParent(group), imageNames: [base.name] });
    assert.deepEqual((await rejects(missing, Code.INVALID_ARGUMENT)).fields, ['image_names[0]']);

    const events = (await eventsAbout(fixture.db, group)).filter(({ type }) => type.includes('.entitlement.'));
    assert.deepEqual(
      events.map(({ type, scope, bodyType }) => [type, scope, bodyType]),
      ['added', 'swapped', 'removed'].map((verb, at) => [
        `dev.chainguard.api.registry.entitlement.images.${verb}.v1`,
        group,
        `chainguard.platform.registry.${['Add', 'Swap', 'Remove'][at]}EntitlementImagesResponse`,
      ]),
    );
    const outsider = fixture.as(
      await (await callerWithRole(fixture.server, 'owner', await fixture.newGroup())).token(),
    );
    await rejects(
      outsider.call(method.addEntitlementImages, { ...inParent(group), imageNames: [two.uid] }),
      Code.PERMISSION_DENIED,
    );
  });

  test('a group is entitled to what it and the groups above it have, until that expires', async () => {
    const parent = await fixture.newGroup();
    const group = await fixture.newGroup(parent);
    const { one, two } = await newCatalog(fixture);
    const effective = () => fixture.api.call(method.getEffectiveEntitlements, { parent: group });
    assert.equal((await effective()).plan, v1.Plan.PLAN_UNSPECIFIED);
    await create(parent, { quota, type: v1.Entitlement_Type.STARTER });
    await add(parent, [one.uid]);
    assert.equal((await effective()).plan, v1.Plan.STARTER);
    await create(group, { quota, type: v1.Entitlement_Type.PRODUCTION, expirationTime: later });
    await add(group, [one.uid]);
    await create(group, { tiers: [CatalogTier.AI], quota, expirationTime: expired });
    const found = await effective();
    assert.equal(found.plan, v1.Plan.PER_IMAGE);
    assert.deepEqual(found.activeTiers, []);
    // Both entitlements have the image. The one of the parent does not expire.
    assert.deepEqual(
      found.activeImages.map(({ id, type, expirationTime }) => [id, type, expirationTime]),
      [[one.uid, v1.Entitlement_Type.STARTER, undefined]],
    );
    assert.deepEqual(
      [found.quota.APPLICATION?.current, found.quota.APPLICATION?.max, found.maxTotalImages],
      [2, 2, 12],
    );
    const swap = { removeImageNames: [one.uid], addImageNames: [two.uid] };
    await fixture.api.call(method.swapEntitlementImages, { ...inParent(group), ...swap });
    assert.deepEqual([(await effective()).swapsUsed, (await effective()).activeImages.length], [1, 2]);
    const summary = await fixture.api.call(method.summary, { parent: group });
    assert.deepEqual([summary.quota.APPLICATION?.max, summary.quota.base?.max], [1, 5]);
    assert.ok(summary.lastUpdatedTime);
    const features = await fixture.api.call(method.getFeatures, { parent: group });
    assert.deepEqual([features.customAssembly, features.uniqueTags], [false, false]);
    for (const each of [method.summary, method.getFeatures, method.getEffectiveEntitlements] as const) {
      await rejects(
        fixture.api.call(each as typeof method.summary, { parent: `${group}/${'0'.repeat(16)}` }),
        Code.NOT_FOUND,
      );
    }
  });

  test('catalog images are the repos with the tiers of an entitlement that the caller may list', async () => {
    const group = await fixture.newGroup();
    const { one, base } = await newCatalog(fixture);
    const copy = { name: `copy-${one.name}`, syncConfig: { source: one.uid } };
    await fixture.api.call(createRepo, { parent: group, repo: copy });
    const catalogOf = async (client = fixture.api) =>
      (await client.call(method.listEntitlementCatalogImages, { parent: group })).images.map(({ id }) => id);
    await create(group, { tiers: [CatalogTier.BASE], expirationTime: expired });
    assert.deepEqual(await catalogOf(), []);
    await create(group, { tiers: [CatalogTier.BASE] });
    assert.ok((await catalogOf()).includes(base.uid));
    assert.ok(!(await catalogOf()).includes(one.uid));
    const owner = fixture.as(await (await callerWithRole(fixture.server, 'owner', group)).token());
    assert.deepEqual(await catalogOf(owner), []);
    await fixture.api.call(updateRepo, {
      repo: { uid: base.uid, catalogTier: V2CatalogTier.FIPS },
      updateMask: { paths: ['catalog_tier'] },
    });
    assert.ok(!(await catalogOf()).includes(base.uid));
  });

  test('a group with entitlements can sync only entitled images of other organizations', async () => {
    const group = await fixture.newGroup();
    const { one, two, base } = await newCatalog(fixture);
    const sync = (name: string, source: string) =>
      fixture.api.call(createRepo, { parent: group, repo: { name, syncConfig: { source } } });
    await sync('before', two.uid);
    const { id } = await create(group, { quota, tiers: [CatalogTier.BASE] });
    await add(group, [one.name]);
    await sync('image', one.uid);
    // The copy has the same name as its source, which is still found by its name.
    const named = await sync(base.name, base.name);
    assert.equal(named.syncConfig?.source, base.uid);
    const local = await fixture.api.call(createRepo, { parent: group, repo: { name: 'local' } });
    await sync('own', local.uid);
    const refused = await rejects(sync('other', two.uid), Code.FAILED_PRECONDITION);
    assert.match(refused.message, /no active entitlement includes the image two-/);
    await fixture.api.call(method.deleteEntitlement, { id });
    await create(group, { tiers: [CatalogTier.APPLICATION], expirationTime: expired });
    await rejects(sync('other', two.uid), Code.FAILED_PRECONDITION);
  });
});
