import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiFixture } from './api-fixture.ts';
import type { Client } from './wires.ts';

/** What a writer wrote: the argument for the read methods, and a text that their result contains. */
export interface WrittenSample {
  readonly query: string;
  readonly expectedText: string;
}

/** Data that both v1 and v2 can read, but that not both can write. */
export interface ReadPair {
  readonly resource: string;
  /** The ways to write the data, by name. */
  readonly writers: Readonly<Record<string, (fixture: ApiFixture) => Promise<WrittenSample>>>;
  /** Each reads through one version and returns the fields that both have, by their names in v2. */
  v1(api: Client, query: string): Promise<unknown>;
  v2(api: Client, query: string): Promise<unknown>;
}

type FieldNames = Readonly<Record<string, string>>;

/** Copies a message without type names and undefined fields. `names` maps field names of v1 to those of v2. */
export function toPlainObject(value: unknown, names: FieldNames = {}): unknown {
  if (Array.isArray(value)) return value.map((one) => toPlainObject(one, names));
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
  const fields = Object.entries(value).filter(([name, one]) => name !== '$typeName' && one !== undefined);
  return Object.fromEntries(fields.map(([name, one]) => [names[name] ?? name, toPlainObject(one, names)]));
}

const textOf = (value: unknown): string =>
  JSON.stringify(value, (_, one) => (typeof one === 'bigint' ? String(one) : one));

/** Tests, for each writer, that both versions read the same. */
export function testReadPair(fixture: ApiFixture, { resource, writers, v1, v2 }: ReadPair): void {
  for (const [writer, write] of Object.entries(writers)) {
    test(`${resource}: both versions read what ${writer} wrote`, async () => {
      const { query, expectedText } = await write(fixture);
      const read = await v2(fixture.api, query);
      assert.ok(textOf(read).includes(expectedText), textOf(read));
      assert.deepEqual(await v1(fixture.api, query), read);
    });
  }
}
