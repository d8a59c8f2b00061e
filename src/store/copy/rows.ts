import { createHash } from 'node:crypto';
import type { Value } from '../value.ts';
import type { Column } from './tables.ts';

/** The values of a row, in the order of the columns of its table. */
export type CopiedRow = readonly Value[];

/** Collects a checksum over rows. Equal rows have equal checksums, whichever database they were read from. */
export class Checksum {
  readonly #hash = createHash('sha256');
  rows = 0;

  add(rows: readonly string[]): void {
    this.rows += rows.length;
    this.#hash.update(rows.join(''));
  }

  digest(): string {
    return this.#hash.digest('hex');
  }
}

/** Encodes a row so that different rows have different texts. */
export function encodeRow(columns: readonly Column[], row: CopiedRow): string {
  let text = '';
  for (let at = 0; at < columns.length; at++) text += encodeValue(row[at] as Value, columns[at]?.type === 'json');
  return `${text}\n`;
}

function encodeValue(value: Value, isJson: boolean): string {
  if (value === null) return 'null;';
  if (typeof value === 'number') return `${value};`;
  if (typeof value === 'string') return isJson ? `json:${canonicalJson(value)};` : `${value.length}:${value};`;
  return `${value.byteLength}:${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64')};`;
}

/** PostgreSQL stores JSON without its spaces and with its keys in another order. */
function canonicalJson(text: string): string {
  return JSON.stringify(JSON.parse(text), (_, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}
