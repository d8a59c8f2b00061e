import { fromBinary } from '@bufbuild/protobuf';
import { ancestorsOf, descendantRange, type Uid } from '../base/uid.ts';
import type { Row, Transaction } from '../store/store.ts';
import { bumpAccessVersion } from './access-version.ts';
import type { Resource } from './definition.ts';
import { releaseKey } from './keys-and-references.ts';
import { inLockOrder, scopeKey } from './list-membership.ts';
import { SUBTRACT_FROM_LIST } from './listing-index.ts';

const BATCH = 500;
const BODIES =
  'SELECT uid, body, state FROM resource WHERE kind = $1 AND parent = $2 AND uid > $3 ORDER BY uid LIMIT $4';
const DELETE = 'DELETE FROM resource WHERE kind = $1 AND parent = $2';
const DROP_REFERENCES = 'DELETE FROM reference WHERE kind = $1 AND field = $2 AND value = $3 AND uid > $4 AND uid < $5';
const LISTS = 'SELECT id, facet, n FROM list WHERE scope = $1 AND kind = $2 AND n > 0';
const DROP_SAME = `DELETE FROM entry WHERE list = $1
  AND (sort, key, uid) IN (SELECT sort, key, uid FROM entry WHERE list = $2)`;
const DROP_ALL = 'DELETE FROM entry WHERE list = $1';

interface List extends Row {
  readonly id: number;
  readonly facet: string;
  readonly n: number;
}

/**
 * Deletes all resources of a kind under a parent that is being deleted too. The number of statements depends on the number
 * of lists and not of resources: deleting ten thousand tags one by one would exceed every deadline.
 */
export async function deleteChildren(tx: Transaction, resource: Resource, parent: Uid): Promise<void> {
  if (resource.grantsAccess) bumpAccessVersion(tx);
  await dropKeysAndReferences(tx, resource, parent);
  // The descendants of this kind are all children: anything in between would have prevented the deletion.
  const lists = await tx.all<List>(LISTS, scopeKey('descendants', parent), resource.kind);
  const affected = ancestorsOf(parent)
    .map((uid) => scopeKey('descendants', uid))
    .flatMap((scope) => lists.map((list) => ({ scope, facet: list.facet, list })))
    .sort(inLockOrder);
  for (const { scope, facet, list } of affected) {
    const [row] = await tx.runReturning<{ id: number }>(SUBTRACT_FROM_LIST, scope, resource.kind, facet, list.n);
    // A member has the same sort keys in every list.
    if (row) await tx.run(DROP_SAME, row.id, list.id);
  }
  const children = await tx.all<List>(LISTS, scopeKey('children', parent), resource.kind);
  for (const { id } of [...lists, ...children]) await tx.run(DROP_ALL, id);
  await tx.run(DELETE, resource.kind, parent);
}

interface BodyRow extends Row {
  readonly uid: Uid;
  readonly body: Uint8Array;
  readonly state: string | null;
}

async function dropKeysAndReferences(tx: Transaction, resource: Resource, parent: string): Promise<void> {
  const { references = {}, unique } = resource;
  if (!unique && Object.keys(references).length === 0) return;
  const dropped = new Set<string>();
  for (let after = ''; ; ) {
    const rows = await tx.all<BodyRow>(BODIES, resource.kind, parent, after, BATCH);
    for (const { uid, body, state } of rows) {
      const message = fromBinary(resource.schema, body) as never;
      for (const { key } of unique?.(message, parent) ?? []) await releaseKey(tx, resource, key, uid);
      for (const [field, valuesOf] of Object.entries(references)) {
        for (const value of valuesOf(message, state === null ? undefined : JSON.parse(state))) {
          if (dropped.has(`${field} ${value}`)) continue;
          dropped.add(`${field} ${value}`);
          await tx.run(DROP_REFERENCES, resource.kind, field, value, ...descendantRange(parent));
        }
      }
    }
    const last = rows.at(-1);
    if (!last || rows.length < BATCH) return;
    after = last.uid;
  }
}
