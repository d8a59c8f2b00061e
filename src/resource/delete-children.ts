import { fromBinary } from '@bufbuild/protobuf';
import { ancestorsOf, rangeBelow } from '../base/uid.ts';
import type { Row, Transaction } from '../store/store.ts';
import type { Resource } from './definition.ts';
import { inLockOrder, scopeKey } from './list-membership.ts';
import { changeAccess, freeKey } from './write.ts';

const BATCH = 500;
const BODIES = 'SELECT uid, body FROM resource WHERE kind = $1 AND parent = $2 AND uid > $3 ORDER BY uid LIMIT $4';
const DELETE = 'DELETE FROM resource WHERE kind = $1 AND parent = $2';
const DROP_REFERENCES = 'DELETE FROM reference WHERE kind = $1 AND field = $2 AND value = $3 AND uid > $4 AND uid < $5';
const LISTS = 'SELECT id, facet, n FROM list WHERE scope = $1 AND kind = $2 AND n > 0';
const LEAVE = 'UPDATE list SET n = n - $4 WHERE scope = $1 AND kind = $2 AND facet = $3 RETURNING id';
const DROP_SAME = `DELETE FROM entry WHERE list = $1
  AND (sort, key, uid) IN (SELECT sort, key, uid FROM entry WHERE list = $2)`;
const DROP_ALL = 'DELETE FROM entry WHERE list = $1';

interface List extends Row {
  readonly id: number;
  readonly facet: string;
  readonly n: number;
}

/**
 * Removes everything of a kind under a parent that goes away itself, in a number of statements that depends on the lists
 * and not on their members: one by one, ten thousand tags on a busy database would take longer than anybody waits.
 */
export async function removeChildren(tx: Transaction, resource: Resource, parent: string): Promise<void> {
  if (resource.grantsAccess) changeAccess(tx);
  await dropKeysAndReferences(tx, resource, parent);
  // Nothing else of the kind is below: what could hold it would keep the parent from being deleted.
  const lists = await tx.all<List>(LISTS, scopeKey('descendants', parent), resource.kind);
  const left = ancestorsOf(parent)
    .map((uid) => scopeKey('descendants', uid))
    .flatMap((scope) => lists.map((list) => ({ scope, facet: list.facet, list })))
    .sort(inLockOrder);
  for (const { scope, facet, list } of left) {
    const row = await tx.get<{ id: number }>(LEAVE, scope, resource.kind, facet, list.n);
    // A member has the same keys in every list that it stands in.
    if (row) await tx.run(DROP_SAME, row.id, list.id);
  }
  const children = await tx.all<List>(LISTS, scopeKey('children', parent), resource.kind);
  for (const { id } of [...lists, ...children]) await tx.run(DROP_ALL, id);
  await tx.run(DELETE, resource.kind, parent);
}

async function dropKeysAndReferences(tx: Transaction, resource: Resource, parent: string): Promise<void> {
  const { references = {}, unique } = resource;
  if (!unique && Object.keys(references).length === 0) return;
  const dropped = new Set<string>();
  for (let after = ''; ; ) {
    const rows = await tx.all<{ uid: string; body: Uint8Array }>(BODIES, resource.kind, parent, after, BATCH);
    for (const { uid, body } of rows) {
      const message = fromBinary(resource.schema, body) as never;
      for (const { key } of unique?.(message, parent) ?? []) await freeKey(tx, resource, key, uid);
      for (const [field, valuesOf] of Object.entries(references)) {
        for (const value of valuesOf(message)) {
          if (dropped.has(`${field} ${value}`)) continue;
          dropped.add(`${field} ${value}`);
          await tx.run(DROP_REFERENCES, resource.kind, field, value, ...rangeBelow(parent));
        }
      }
    }
    const last = rows.at(-1);
    if (!last || rows.length < BATCH) return;
    after = last.uid;
  }
}
