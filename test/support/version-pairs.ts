import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code } from '../../src/base/errors.ts';
import { v2beta1Id } from '../../src/contract/v2beta1.ts';
import type { ApiFixture } from './api-fixture.ts';
import { rejects } from './rejects.ts';
import type { Client } from './wires.ts';

/** The methods of one API version for a resource. */
export interface VersionMethods<M> {
  create(api: Client, parent: string, name: string): Promise<M>;
  /** Lists by uid, because v1 has no method to get a single resource. */
  find(api: Client, uid: string): Promise<readonly M[]>;
  /** Undefined if the version has no such method. */
  update?(api: Client, before: M): Promise<M>;
  remove(api: Client, uid: string): Promise<unknown>;
  /** The fields that both versions have, by their names in v2. */
  commonFields(message: M): Readonly<Record<string, unknown>> & { readonly uid: string };
}

/** A resource that can be written through both v1 and v2. Each is listed in test/pairs/all.ts. */
export interface VersionPair<V1, V2> {
  readonly resource: string;
  /** Creates a parent for the resource. By default the parent is a new group. */
  parent?(fixture: ApiFixture): Promise<string>;
  readonly v1: VersionMethods<V1>;
  readonly v2: VersionMethods<V2> & { get(api: Client, uid: string): Promise<V2> };
}

/** Converts a oneof to an object with the case as its only key, without type names. */
export const oneofToObject = ({ case: name, value }: { case: string | undefined; value?: unknown }) => ({
  [name ?? 'unset']: JSON.parse(JSON.stringify(value ?? null, (key, part) => (key === '$typeName' ? undefined : part))),
});

let nameCount = 0;

/** A client that calls the methods of v2 by their v2beta1 names. */
export const v2beta1Client = ({ api, server }: Pick<ApiFixture, 'api' | 'server'>): Client => ({
  ...api,
  call(method, request) {
    const id =
      v2beta1Id(`${method.parent.typeName}/${method.name}`) ?? assert.fail(`${method.name} is not a method of v2`);
    return api.call(method, request, { token: server.token, id });
  },
});

/** Tests that resources written through v2 can be read through v2beta1, and the reverse. */
export function testV2beta1Name<V1, V2>(fixture: ApiFixture, { resource, parent, v2 }: VersionPair<V1, V2>): void {
  const newParent = () => (parent ? parent(fixture) : fixture.newGroup());
  const clients = { v2: () => fixture.api, v2beta1: () => v2beta1Client(fixture) };
  for (const [writing, reading] of [['v2beta1', 'v2'] as const, ['v2', 'v2beta1'] as const]) {
    test(`${resource}: ${reading} reads what ${writing} wrote`, async () => {
      const [writer, reader] = [clients[writing](), clients[reading]()];
      const created = await v2.create(writer, await newParent(), `v2beta1 ${++nameCount}`);
      const { uid } = v2.commonFields(created);
      assert.deepEqual(v2.commonFields(await v2.get(reader, uid)), v2.commonFields(created));
      const last = v2.update ? await v2.update(writer, created) : created;
      assert.deepEqual((await v2.find(reader, uid)).map(v2.commonFields), [v2.commonFields(last)]);
      await v2.remove(writer, uid);
      await rejects(v2.get(reader, uid), Code.NOT_FOUND);
    });
  }
}

/** Tests that resources written through v1 can be read through v2, and the reverse. */
export function testVersionPair<V1, V2>(fixture: ApiFixture, { resource, parent, v1, v2 }: VersionPair<V1, V2>): void {
  const newParent = () => (parent ? parent(fixture) : fixture.newGroup());
  const only = <M>(found: readonly M[]): M => {
    assert.equal(found.length, 1);
    return found[0] as M;
  };
  const inV1 = async (uid: string) => v1.commonFields(only(await v1.find(fixture.api, uid)));
  const inV2 = async (uid: string) => v2.commonFields(await v2.get(fixture.api, uid));
  const assertDeleted = async (uid: string) => {
    assert.deepEqual(await v1.find(fixture.api, uid), []);
    assert.deepEqual(await v2.find(fixture.api, uid), []);
    await rejects(v2.get(fixture.api, uid), Code.NOT_FOUND);
  };

  test(`${resource}: v2 reads what v1 wrote`, async () => {
    const created = await v1.create(fixture.api, await newParent(), `pair ${++nameCount}`);
    const { uid } = v1.commonFields(created);
    assert.deepEqual(await inV2(uid), v1.commonFields(created));
    assert.deepEqual(await inV1(uid), v1.commonFields(created));
    if (v1.update) {
      const updated = v1.commonFields(await v1.update(fixture.api, created));
      assert.notDeepEqual(updated, v1.commonFields(created));
      assert.deepEqual(await inV2(uid), updated);
      assert.deepEqual(await inV1(uid), updated);
    }
    await v1.remove(fixture.api, uid);
    await assertDeleted(uid);
  });

  test(`${resource}: v1 reads what v2 wrote`, async () => {
    const created = await v2.create(fixture.api, await newParent(), `pair ${++nameCount}`);
    const { uid } = v2.commonFields(created);
    assert.deepEqual(await inV1(uid), v2.commonFields(created));
    if (v2.update) {
      const updated = v2.commonFields(await v2.update(fixture.api, created));
      assert.notDeepEqual(updated, v2.commonFields(created));
      assert.deepEqual(await inV1(uid), updated);
    }
    await v2.remove(fixture.api, uid);
    await assertDeleted(uid);
  });
}
