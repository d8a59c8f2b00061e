import { parentOf, ROOT } from '../../base/uid.ts';
import { batchPlaceholders, parameterBatches } from '../../store/parameter-batches.ts';
import type { Reader, Row } from '../../store/store.ts';
import type { Resource, Stored } from '../definition.ts';
import { keyPart, missingParts } from '../index/index-parts.ts';
import type { ListMembership } from '../list-membership.ts';
import { COLUMNS, type ResourceRow, toStored } from '../read.ts';
import type { Difference, ProblemType, Report } from './difference.ts';
import { describeList, expectedKeys, expectedMemberships, expectedReferences } from './expected-rows.ts';
import { findMissing, pagesOf, type TupleLookup } from './find-tuples.ts';
import type { ListCounts } from './list-counts.ts';
import type { Repair } from './repair.ts';

const RESOURCES = `SELECT ${COLUMNS.join(', ')}, keys FROM resource
  WHERE kind = $1 AND uid > $2 ORDER BY uid LIMIT 200`;
const FIND_UIDS = `SELECT uid FROM resource WHERE kind = $1 AND uid IN (${batchPlaceholders(2)})`;
const FIND_KEYS = `SELECT key, uid FROM natural_key WHERE kind = $1 AND key IN (${batchPlaceholders(2)})`;
const ENTRY: TupleLookup = {
  table: 'entry',
  columns: { list: 'BIGINT', sort: 'TEXT', key: 'TEXT', uid: 'TEXT' },
};
const REFERENCE: TupleLookup = {
  table: 'reference',
  columns: { field: 'TEXT', value: 'TEXT', uid: 'TEXT' },
  fixed: ['kind'],
};

interface RowWithKeys extends ResourceRow {
  readonly keys: string;
}

/** How many rows the resources of a kind have in the tables of keys and references. */
export interface RowCounts {
  keys: number;
  references: number;
  /** Whether a key or reference is missing, so that the numbers do not tell whether another one is extra. */
  hasMissing: boolean;
  /** Whether a resource cannot be decoded, so that nothing can be called extra. */
  hasUndecodable: boolean;
}

export interface KindCheck {
  readonly db: Reader;
  readonly resource: Resource;
  readonly report: Report;
  readonly counts: ListCounts;
  readonly repair: Repair | undefined;
  /** Called with the number of resources that were checked since the last call. */
  readonly onProgress: (resources: number) => void;
}

/**
 * Checks that the tables have everything that follows from the resources of a kind, page by page. Counts in `counts` how
 * many members each list should have.
 */
export async function checkResources(check: KindCheck): Promise<RowCounts> {
  const { db, resource, report, repair, onProgress } = check;
  const { kind } = resource;
  const rowCounts: RowCounts = { keys: 0, references: 0, hasMissing: false, hasUndecodable: false };
  const memberships = expectedMemberships(db.listingIndexes, resource);
  for await (const rows of pagesOf<RowWithKeys>(db, RESOURCES, [kind, ''], ({ uid }) => [kind, uid])) {
    const found: Difference[] = [];
    const differ: Differ = (uid, problem, description, advice) => {
      const isRepairable = advice === undefined;
      const difference = { kind, uid, problem, description, isRepairable, isRepaired: false };
      found.push(advice === undefined ? difference : { ...difference, advice });
    };
    const page = decodeRows(resource, rows, differ);
    if (page.length < rows.length) rowCounts.hasUndecodable = true;
    await checkParents(db, resource, page, differ);
    checkSortKeys(db, resource, page, differ);
    await checkEntries(check, page, memberships, differ);
    await checkKeys(db, resource, page, rowCounts, differ);
    await checkReferences(db, resource, page, rowCounts, differ);
    const uids = [...new Set(found.filter(({ isRepairable }) => isRepairable).map(({ uid }) => uid))];
    if (repair && uids.length > 0) await repair.resources(resource, uids);
    for (const each of found) report({ ...each, isRepaired: repair !== undefined && each.isRepairable });
    onProgress(rows.length);
  }
  return rowCounts;
}

/** Records a difference. With advice it cannot be repaired. */
type Differ = (uid: string, problem: ProblemType, description: string, advice?: string) => void;

interface Decoded {
  readonly row: RowWithKeys;
  readonly stored: Stored;
}

function decodeRows(resource: Resource, rows: readonly RowWithKeys[], differ: Differ): Decoded[] {
  return rows.flatMap((row) => {
    try {
      return [{ row, stored: toStored(resource, row) }];
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      differ(row.uid, 'undecodable', `the stored message cannot be decoded: ${reason}`, 'restore it from a backup');
      return [];
    }
  });
}

async function checkParents(db: Reader, resource: Resource, page: readonly Decoded[], differ: Differ): Promise<void> {
  const parents = [...new Set(page.map(({ row }) => row.parent as string))];
  const existing = new Set<string>();
  for (const kind of resource.parents.filter((each) => each !== ROOT)) {
    for (const some of parameterBatches(parents)) {
      for (const { uid } of await db.all<{ uid: string }>(FIND_UIDS, kind, ...some)) existing.add(uid);
    }
  }
  // Some resources, such as built-in roles and people, have no parent, although their kind is created under one.
  const isWrong = ({ row }: Decoded): boolean =>
    !existing.has(row.parent) && !(row.parent === ROOT && parentOf(row.uid) === ROOT);
  for (const { row } of page.filter(isWrong)) {
    const advice = 'delete it, or restore its parent from a backup';
    differ(row.uid, 'parent', `the parent ${row.parent} does not exist`, advice);
  }
}

function checkSortKeys(db: Reader, resource: Resource, page: readonly Decoded[], differ: Differ): void {
  const missing = missingParts(resource, db.listingIndexes?.get(resource.kind));
  const orders = Object.entries(resource.storedSortKeys).filter(([order]) => !missing?.parts.has(keyPart(order)));
  for (const { row, stored } of page) {
    const keys = JSON.parse(row.keys) as Record<string, string>;
    const wrong = orders.filter(([order, keyOf]) => keys[order] !== keyOf(stored)).map(([order]) => order);
    if (wrong.length > 0) differ(row.uid, 'sort keys', `the stored sort keys are wrong: ${wrong.join(', ')}`);
  }
}

async function checkEntries(
  { db, resource, counts }: KindCheck,
  page: readonly Decoded[],
  memberships: (stored: Stored) => ListMembership[],
  differ: Differ,
): Promise<void> {
  const all = page.flatMap(({ stored }) => memberships(stored));
  const idOf = await counts.findIds(db, resource.kind, all);
  const names = new Map<number, string>();
  const entries: [list: number, sort: string, key: string, uid: string][] = [];
  for (const membership of all) {
    const { scope, facet, uid, keys } = membership;
    const id = idOf(membership);
    if (id === undefined) {
      differ(uid, 'missing entry', `it is not in the list ${describeList(scope, facet)}, which does not exist`);
      continue;
    }
    counts.expect(id);
    names.set(id, describeList(scope, facet));
    for (const [sort, key] of Object.entries(keys)) entries.push([id, sort, key, uid]);
  }
  for (const [list, sort, , uid] of await findMissing(db, ENTRY, [], entries)) {
    counts.suspect(list);
    differ(uid, 'missing entry', `it is not in the list ${names.get(list)} in the order ${sort}`);
  }
}

interface KeyRow extends Row {
  readonly key: string;
  readonly uid: string;
}

async function checkKeys(
  db: Reader,
  resource: Resource,
  page: readonly Decoded[],
  rowCounts: RowCounts,
  differ: Differ,
): Promise<void> {
  const claims = page.flatMap(({ stored }) => expectedKeys(resource, stored));
  const holders = new Map<string, string>();
  for (const some of parameterBatches(claims.map(({ key }) => key))) {
    for (const { key, uid } of await db.all<KeyRow>(FIND_KEYS, resource.kind, ...some)) holders.set(key, uid);
  }
  for (const { key, uid } of claims) {
    const holder = holders.get(key);
    if (holder === uid) {
      rowCounts.keys++;
      continue;
    }
    rowCounts.hasMissing = true;
    if (holder === undefined) differ(uid, 'missing key', `its unique key ${key} is not recorded`);
    else if (await hasKey(db, resource, holder, key)) {
      differ(uid, 'duplicate key', `${holder} has the same unique key ${key}`, 'rename or delete one of the two');
    } else differ(uid, 'missing key', `its unique key ${key} is recorded for ${holder}, which does not have it`);
  }
}

const FIND_RESOURCE = `SELECT ${COLUMNS.join(', ')} FROM resource WHERE kind = $1 AND uid = $2`;

async function hasKey(db: Reader, resource: Resource, uid: string, key: string): Promise<boolean> {
  const row = await db.get<ResourceRow>(FIND_RESOURCE, resource.kind, uid);
  const [holder] = row ? decodeRows(resource, [{ ...row, keys: '' }], () => {}) : [];
  // One that cannot be decoded keeps its key.
  if (row && !holder) return true;
  return holder !== undefined && expectedKeys(resource, holder.stored).some((each) => each.key === key);
}

async function checkReferences(
  db: Reader,
  resource: Resource,
  page: readonly Decoded[],
  rowCounts: RowCounts,
  differ: Differ,
): Promise<void> {
  const references = page.flatMap(({ stored }) => expectedReferences(resource, stored));
  rowCounts.references += references.length;
  for (const [field, value, uid] of await findMissing(db, REFERENCE, [resource.kind], references)) {
    rowCounts.hasMissing = true;
    differ(uid, 'missing reference', `its reference ${field} to ${value} is not recorded`);
  }
}
