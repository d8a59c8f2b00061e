import type { Reader, Row } from '../../store/store.ts';
import type { Resource } from '../definition.ts';
import { findAll } from '../read.ts';
import type { RowCounts } from './check-resources.ts';
import type { ProblemType, Report } from './difference.ts';
import { expectedKeys, expectedReferences } from './expected-rows.ts';
import { pagesOf } from './find-tuples.ts';
import type { Repair } from './repair.ts';

const COUNT_KEYS = 'SELECT count(*) AS n FROM natural_key WHERE kind = $1';
const COUNT_REFERENCES = 'SELECT count(*) AS n FROM reference WHERE kind = $1';
const KEYS = 'SELECT key, uid FROM natural_key WHERE kind = $1 AND key > $2 ORDER BY key LIMIT 500';
const REFERENCES = `SELECT field, value, uid FROM reference
  WHERE kind = $1 AND (field, value, uid) > ($2, $3, $4) ORDER BY field, value, uid LIMIT 500`;

export interface KeyRow extends Row {
  readonly key: string;
  readonly uid: string;
}
export interface ReferenceRow extends Row {
  readonly field: string;
  readonly value: string;
  readonly uid: string;
}

/** Finds the unique keys and references of a kind that no resource has. Reads them only if their numbers are wrong. */
export async function checkExtraRows(
  db: Reader,
  resource: Resource,
  rowCounts: RowCounts,
  report: Report,
  repair: Repair | undefined,
): Promise<void> {
  const { kind } = resource;
  const differ = (uid: string, problem: ProblemType, description: string): void =>
    report({ kind, uid, problem, description, isRepairable: true, isRepaired: repair !== undefined });
  const count = async (statement: string): Promise<number> =>
    Number((await db.get<{ n: number }>(statement, kind))?.n ?? 0);
  if (rowCounts.hasMissing || (await count(COUNT_KEYS)) !== rowCounts.keys) {
    for await (const rows of pagesOf<KeyRow>(db, KEYS, [kind, ''], ({ key }) => [kind, key])) {
      const extra = await findExtraKeys(db, resource, rows);
      if (extra.length > 0) await repair?.extraKeys(resource, extra);
      for (const { key, uid } of extra) differ(uid, 'extra key', `the unique key ${key} is recorded for it wrongly`);
    }
  }
  if (rowCounts.hasMissing || (await count(COUNT_REFERENCES)) !== rowCounts.references) {
    const next = ({ field, value, uid }: ReferenceRow): string[] => [kind, field, value, uid];
    for await (const rows of pagesOf<ReferenceRow>(db, REFERENCES, [kind, '', '', ''], next)) {
      const extra = await findExtraReferences(db, resource, rows);
      if (extra.length > 0) await repair?.extraReferences(resource, extra);
      for (const { field, value, uid } of extra) {
        differ(uid, 'extra reference', `the reference ${field} to ${value} is recorded for it wrongly`);
      }
    }
  }
}

/** Returns those of `rows` that no resource should have. With `tx.forUpdate` as `db`, it stays so until the commit. */
export async function findExtraKeys(db: Reader, resource: Resource, rows: readonly KeyRow[]): Promise<KeyRow[]> {
  const known = new Set<string>();
  for (const stored of await findAll(db, resource, [...new Set(rows.map(({ uid }) => uid))].sort())) {
    for (const { key, uid } of expectedKeys(resource, stored)) known.add(`${uid} ${key}`);
  }
  return rows.filter(({ uid, key }) => !known.has(`${uid} ${key}`));
}

/** The same for references. */
export async function findExtraReferences(
  db: Reader,
  resource: Resource,
  rows: readonly ReferenceRow[],
): Promise<ReferenceRow[]> {
  const known = new Set<string>();
  for (const stored of await findAll(db, resource, [...new Set(rows.map(({ uid }) => uid))].sort())) {
    for (const reference of expectedReferences(resource, stored)) known.add(reference.join(' '));
  }
  return rows.filter(({ field, value, uid }) => !known.has(`${field} ${value} ${uid}`));
}
