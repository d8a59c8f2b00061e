import { alreadyExists } from '../base/errors.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import type { BulkInsert } from '../store/bulk-insert.ts';
import type { Transaction } from '../store/store.ts';
import type { Resource, Stored, UniqueKey } from './definition.ts';
import { compareText } from './list-membership.ts';
import type { Change } from './listing-index.ts';

const KEYS: BulkInsert = {
  into: 'natural_key',
  columns: { kind: 'text', key: 'text', uid: 'text' },
  conflict: 'skip',
  returning: ['key'],
};
const RELEASE_KEY = 'DELETE FROM natural_key WHERE kind = $1 AND key = $2 AND uid = $3';
const REFERENCES: BulkInsert = {
  into: 'reference',
  columns: { kind: 'text', field: 'text', value: 'text', uid: 'text' },
  // A row of another version of the reference can be there until `wharf db check` or the next start removes it.
  conflict: 'skip',
};
const DROP_REFERENCE = 'DELETE FROM reference WHERE kind = $1 AND field = $2 AND value = $3 AND uid = $4';

export const releaseKey = (tx: Transaction, resource: Resource, key: string, uid: string): MaybePromise<number> =>
  tx.run(RELEASE_KEY, resource.kind, key, uid);

/** Claims the unique keys that resources have gained and releases those that they have lost. */
export async function updateUniqueKeys(tx: Transaction, resource: Resource, changes: readonly Change[]): Promise<void> {
  const { kind, unique } = resource;
  if (!unique) return;
  const keysOf = (stored?: Stored) => (stored ? unique(stored.message as never, stored.parent) : []);
  const claims: (UniqueKey & { readonly uid: string })[] = [];
  for (const { uid, before, after } of changes) {
    const [old, wanted] = [keysOf(before), keysOf(after)];
    for (const { key } of old) {
      if (!wanted.some((w) => w.key === key)) await releaseKey(tx, resource, key, uid);
    }
    for (const claim of wanted) {
      if (!old.some((o) => o.key === claim.key)) claims.push({ ...claim, uid });
    }
  }
  // In index order, as in listing-index.ts. It also prevents deadlocks between transactions that claim several keys.
  const rows = claims.sort((a, b) => compareText(a.key, b.key)).flatMap(({ key, uid }) => [kind, key, uid]);
  const granted = new Set((await tx.insert<{ key: string }>(KEYS, rows)).map(({ key }) => key));
  // Not granted: another resource has it, or it was claimed twice here.
  const refused = claims.find(({ key }) => !granted.delete(key));
  if (refused) throw alreadyExists(kind, refused.key, refused.taken);
}

/** Stores the values of declared references that resources have gained and removes those that they have lost. */
export function updateReferences(tx: Transaction, resource: Resource, changes: readonly Change[]): void {
  const rows: string[] = [];
  for (const field of Object.keys(resource.references ?? {})) {
    const added: [value: string, uid: string][] = [];
    const valuesOf = (stored?: Stored) => new Set(stored && resource.values[field]?.(stored.message, stored.state));
    for (const { uid, before, after } of changes) {
      const [old, wanted] = [valuesOf(before), valuesOf(after)];
      for (const value of old.difference(wanted)) tx.runUnawaited(DROP_REFERENCE, resource.kind, field, value, uid);
      for (const value of wanted.difference(old)) added.push([value, uid]);
    }
    added.sort(([a], [b]) => compareText(a, b));
    for (const [value, uid] of added) rows.push(resource.kind, field, value, uid);
  }
  tx.insertUnawaited(REFERENCES, rows);
}
