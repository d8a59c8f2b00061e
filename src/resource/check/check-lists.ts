import type { Reader, Row } from '../../store/store.ts';
import type { Resource, Stored } from '../definition.ts';
import { entriesPart, facetOfList, partSet } from '../index/index-parts.ts';
import { findAll } from '../read.ts';
import type { Difference, Report } from './difference.ts';
import { describeList, expectedKey, expectedMemberships, expectedOrders } from './expected-rows.ts';
import { pagesOf } from './find-tuples.ts';
import type { ListCounts } from './list-counts.ts';
import type { Repair } from './repair.ts';

const LISTS = 'SELECT id, scope, kind, facet, n FROM list WHERE id > $1 ORDER BY id LIMIT 500';
const COUNT_ENTRIES = 'SELECT list, sort, count(*) AS n FROM entry WHERE list > $1 AND list <= $2 GROUP BY list, sort';
const ENTRIES = `SELECT sort, key, uid FROM entry WHERE list = $1 AND (sort, key, uid) > ($2, $3, $4)
  ORDER BY sort, key, uid LIMIT 500`;

export interface ListRow extends Row {
  readonly id: number;
  readonly scope: string;
  readonly kind: string;
  readonly facet: string;
  readonly n: number;
}

export interface EntryRow extends Row {
  readonly sort: string;
  readonly key: string;
  readonly uid: string;
}

export interface ListsCheck {
  readonly db: Reader;
  /** The resources whose lists are checked, by kind. */
  readonly kinds: ReadonlyMap<string, Resource>;
  /** What checkResources has counted for all of them. */
  readonly counts: ListCounts;
  readonly report: Report;
  readonly repair: Repair | undefined;
}

/** Checks the sizes of all lists, and that lists have no entries besides those that resources should have. */
export async function checkLists(check: ListsCheck): Promise<void> {
  const { db, kinds } = check;
  let after = 0;
  for await (const lists of pagesOf<ListRow>(db, LISTS, [0], ({ id }) => [id])) {
    const last = lists.at(-1)?.id ?? 0;
    if (lists.some(({ kind }) => kinds.has(kind))) {
      const entries = await countEntries(db, after, last);
      for (const list of lists) {
        const resource = kinds.get(list.kind);
        if (resource) await checkList(check, resource, list, entries.get(list.id) ?? new Map());
      }
    }
    after = last;
  }
}

interface CountRow extends Row {
  readonly list: number;
  readonly sort: string;
  readonly n: number;
}

async function countEntries(db: Reader, after: number, last: number): Promise<Map<number, Map<string, number>>> {
  const counts = new Map<number, Map<string, number>>();
  for (const { list, sort, n } of await db.all<CountRow>(COUNT_ENTRIES, after, last)) {
    counts.set(list, (counts.get(list) ?? new Map<string, number>()).set(sort, Number(n)));
  }
  return counts;
}

async function checkList(
  check: ListsCheck,
  resource: Resource,
  list: ListRow,
  entries: ReadonlyMap<string, number>,
): Promise<void> {
  const { db, counts, repair } = check;
  const { id, facet: key, n } = list;
  const facet = facetOfList(key);
  // What is being built or dropped is checked when that is done.
  const index = db.listingIndexes?.get(resource.kind);
  const unfinished = partSet([...(index?.building ?? []), ...(index?.dropping ?? [])]);
  if (facet !== '' && unfinished.hasFacet(facet)) return;
  const isFinished = (order: string): boolean => !unfinished.parts.has(entriesPart(facet, order));
  const members = counts.expected(id);
  const orders = expectedOrders(resource, facet);
  const hasExtra = [...entries].some(([order, count]) => {
    return isFinished(order) && count > (orders.includes(order) ? members : 0);
  });
  if (hasExtra || counts.isSuspect(id)) await checkListEntries(check, resource, list, isFinished);
  if (n === members) return;
  await repair?.listSize(resource, id);
  reportIn(check, list, 'list size', '', `the size of the list is ${n}, but it has ${members} members`);
}

/** Finds the entries of a list that no resource should have. */
async function checkListEntries(
  check: ListsCheck,
  resource: Resource,
  list: ListRow,
  isFinished: (order: string) => boolean,
): Promise<void> {
  const { db, repair } = check;
  const { id } = list;
  const memberships = expectedMemberships(db.listingIndexes, resource);
  const next = ({ sort, key, uid }: EntryRow) => [id, sort, key, uid];
  for await (const page of pagesOf<EntryRow>(db, ENTRIES, [id, '', '', ''], next)) {
    const uids = [...new Set(page.map(({ uid }) => uid))];
    const stored = new Map<string, Stored>((await findAll(db, resource, uids)).map((each) => [each.uid, each]));
    const extra = page.filter(
      ({ sort, key, uid }) => isFinished(sort) && expectedKey(memberships, stored.get(uid), list, sort) !== key,
    );
    if (extra.length > 0) await repair?.extraEntries(resource, list, extra);
    for (const { sort, uid } of extra) {
      const name = describeList(list.scope, list.facet);
      reportIn(
        check,
        list,
        'extra entry',
        uid,
        `the list ${name} has an entry in the order ${sort} that is not its own`,
      );
    }
  }
}

function reportIn(
  { report, repair }: ListsCheck,
  { kind, scope, facet }: ListRow,
  problem: Difference['problem'],
  uid: string,
  description: string,
): void {
  const name = uid === '' ? describeList(scope, facet) : uid;
  report({ kind, uid: name, problem, description, isRepairable: true, isRepaired: repair !== undefined });
}
