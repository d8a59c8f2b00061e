import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code } from '../../src/base/errors.ts';
import { v2beta1Id } from '../../src/contract/v2beta1.ts';
import type { Bench } from './every-database-and-wire.ts';
import { rejects } from './rejects.ts';
import type { Client } from './wires.ts';

/** One version's way to a resource. */
export interface Side<M> {
  create(api: Client, parent: string, name: string): Promise<M>;
  /** Those of this uid: v1 has no other way to read one. */
  find(api: Client, uid: string): Promise<readonly M[]>;
  /** Absent where the version has no such method. */
  update?(api: Client, before: M): Promise<M>;
  remove(api: Client, uid: string): Promise<unknown>;
  /** What both versions say of it, in the words of v2. */
  view(message: M): Readonly<Record<string, unknown>> & { readonly uid: string };
}

/** A resource that v1 and v2 both know. Another one takes another row. */
export interface Pair<V1, V2> {
  readonly resource: string;
  /** A new place for it; the organization's own new group where it needs nothing special. */
  parent?(bench: Bench): Promise<string>;
  readonly v1: Side<V1>;
  readonly v2: Side<V2> & { get(api: Client, uid: string): Promise<V2> };
}

/** A oneof by the name of its case, without the names of types. */
export const inPlainWords = ({ case: kind, value }: { case: string | undefined; value?: unknown }) => ({
  [kind ?? 'nothing']: JSON.parse(
    JSON.stringify(value ?? null, (key, part) => (key === '$typeName' ? undefined : part)),
  ),
});

let count = 0;

/** Calls v2 under its former name. */
const formerly = ({ api, server }: Bench): Client => ({
  ...api,
  call(method, request) {
    const id = v2beta1Id(`${method.parent.typeName}/${method.name}`) ?? assert.fail(`${method.name} is not of v2`);
    return api.call(method, request, { token: server.token, id });
  },
});

/** Writes through v2 under one of its names and reads it under the other. */
export function testFormerName<V1, V2>(bench: Bench, { resource, parent, v2 }: Pair<V1, V2>): void {
  const place = () => (parent ? parent(bench) : bench.newGroup());
  const names = { v2: () => bench.api, v2beta1: () => formerly(bench) };
  for (const [here, there] of [['v2beta1', 'v2'] as const, ['v2', 'v2beta1'] as const]) {
    test(`${resource}: what ${here} writes, ${there} reads`, async () => {
      const [writer, reader] = [names[here](), names[there]()];
      const made = await v2.create(writer, await place(), `former ${++count}`);
      const { uid } = v2.view(made);
      assert.deepEqual(v2.view(await v2.get(reader, uid)), v2.view(made));
      const last = v2.update ? await v2.update(writer, made) : made;
      assert.deepEqual((await v2.find(reader, uid)).map(v2.view), [v2.view(last)]);
      await v2.remove(writer, uid);
      await rejects(v2.get(reader, uid), Code.NOT_FOUND);
    });
  }
}

/** Writes through each version and reads through the other. */
export function testPair<V1, V2>(bench: Bench, { resource, parent, v1, v2 }: Pair<V1, V2>): void {
  const place = () => (parent ? parent(bench) : bench.newGroup());
  const only = <M>(found: readonly M[]): M => {
    assert.equal(found.length, 1);
    return found[0] as M;
  };
  const inV1 = async (uid: string) => v1.view(only(await v1.find(bench.api, uid)));
  const inV2 = async (uid: string) => v2.view(await v2.get(bench.api, uid));
  const gone = async (uid: string) => {
    assert.deepEqual(await v1.find(bench.api, uid), []);
    assert.deepEqual(await v2.find(bench.api, uid), []);
    await rejects(v2.get(bench.api, uid), Code.NOT_FOUND);
  };

  test(`${resource}: what v1 writes, v2 reads`, async () => {
    const made = await v1.create(bench.api, await place(), `pair ${++count}`);
    const { uid } = v1.view(made);
    assert.deepEqual(await inV2(uid), v1.view(made));
    assert.deepEqual(await inV1(uid), v1.view(made));
    if (v1.update) {
      const changed = v1.view(await v1.update(bench.api, made));
      assert.notDeepEqual(changed, v1.view(made));
      assert.deepEqual(await inV2(uid), changed);
      assert.deepEqual(await inV1(uid), changed);
    }
    await v1.remove(bench.api, uid);
    await gone(uid);
  });

  test(`${resource}: what v2 writes, v1 reads`, async () => {
    const made = await v2.create(bench.api, await place(), `pair ${++count}`);
    const { uid } = v2.view(made);
    assert.deepEqual(await inV1(uid), v2.view(made));
    if (v2.update) {
      const changed = v2.view(await v2.update(bench.api, made));
      assert.notDeepEqual(changed, v2.view(made));
      assert.deepEqual(await inV1(uid), changed);
    }
    await v2.remove(bench.api, uid);
    await gone(uid);
  });
}
