import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Bench } from './every-database-and-wire.ts';
import type { Client } from './wires.ts';

/** What to ask for after something was written, and a text that the answer then has. */
export interface Written {
  readonly asked: string;
  readonly shows: string;
}

/** Something that v1 and v2 both read, and that not both can write. Another one takes another row. */
export interface Reading {
  readonly resource: string;
  /** By who or what writes it. */
  readonly writes: Readonly<Record<string, (bench: Bench) => Promise<Written>>>;
  /** What each version says of it, in the words of v2. */
  v1(api: Client, asked: string): Promise<unknown>;
  v2(api: Client, asked: string): Promise<unknown>;
}

type Names = Readonly<Record<string, string>>;

/** A message without the names of types and without absent fields; `names` are what v2 calls fields of v1, at any depth. */
export function plain(value: unknown, names: Names = {}): unknown {
  if (Array.isArray(value)) return value.map((one) => plain(one, names));
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
  const fields = Object.entries(value).filter(([name, one]) => name !== '$typeName' && one !== undefined);
  return Object.fromEntries(fields.map(([name, one]) => [names[name] ?? name, plain(one, names)]));
}

const textOf = (value: unknown): string =>
  JSON.stringify(value, (_, one) => (typeof one === 'bigint' ? String(one) : one));

/** Writes in every way there is, and reads through both versions. */
export function testReading(bench: Bench, { resource, writes, v1, v2 }: Reading): void {
  for (const [writer, write] of Object.entries(writes)) {
    test(`${resource}: what ${writer} writes, both versions read`, async () => {
      const { asked, shows } = await write(bench);
      const read = await v2(bench.api, asked);
      assert.ok(textOf(read).includes(shows), textOf(read));
      assert.deepEqual(await v1(bench.api, asked), read);
    });
  }
}
