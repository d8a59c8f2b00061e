import { createLru } from '../../base/lru.ts';
import type { Value } from '../../store/store.ts';
import type { Filter, KeyCondition } from './conditions.ts';
import { type Order, UNORDERED } from './order.ts';
import { padToPowerOfTwo } from './pad-to-power-of-two.ts';
import type { Scan } from './scan.ts';
import {
  listCondition,
  type Placeholder,
  referenceCondition,
  scanParameters,
  scanTable,
  scanTextKey,
} from './scan-sql.ts';

/** What one statement reads. Queries that differ in parameters only share one prepared statement. */
export interface ScanQuery {
  readonly scans: readonly Scan[];
  /** A uid that is omitted. */
  readonly excludedUid: string | undefined;
  /** The order in which the scans read rows. */
  readonly sort: string;
  /** The order of the result. */
  readonly order: Order;
  /** Whether to read only the rows after the cursor. */
  readonly afterCursor: boolean;
  /** Sort keys that rows must have. */
  readonly equalKeys: readonly KeyCondition[];
  /** The lower bound of a sort key. */
  readonly since: KeyCondition | undefined;
  /** The upper bound of a sort key, which is not included. */
  readonly before: KeyCondition | undefined;
  readonly referenceFilters: readonly Filter[];
  /**
   * Whether to sort the union of the scans rather than merge them. SQLite merges by a chain that is as long as the
   * number of scans, so that each row takes as many steps: 100 scans took 40 ms. Sorting is cheaper for some hundred
   * rows only.
   */
  readonly sortsUnion: boolean;
  /**
   * The table function by which one nested loop runs all scans (`Reader.jsonElements`), instead of a union. The scans
   * must have the same SQL and read their rows in `order`.
   */
  readonly loopFunction: string | undefined;
  /** Whether a row can be in several scans, so that duplicates must be removed. */
  readonly scansOverlap: boolean;
  /** Whether a page includes the bodies of its rows. Not needed with a row cache, which has most of them. */
  readonly withBodies: boolean;
  /** Makes text from JSON compare bytewise. */
  readonly binaryCollation: string;
}

export interface Statement {
  readonly text: string;
  /** Returns the parameters in the order of the text. */
  bind(values: Readonly<Record<string, Value>>): Value[];
}

/** As many as a connection keeps prepared. */
const statements = createLru<string, Statement>(500);

/**
 * Reads the rows of one page in order, with their sort keys `k0`, `k1`… Binds `kind`, `limit`, `skip`, `scan_limit`,
 * `union_limit`, the cursor and the values of `queryValues`.
 */
export const pageStatement = (query: ScanQuery): Statement => cachedStatement('page', query, buildPage);

/** Reads the first row of each scan, with the number of the scan. Binds `kind`, the cursor and `queryValues`. */
export const firstRowsStatement = (query: ScanQuery): Statement => cachedStatement('first rows', query, buildFirstRows);

/** Counts the rows of the scans by reading them. Binds `kind` and `queryValues`. */
export const countStatement = (query: ScanQuery): Statement => cachedStatement('count', query, buildCount);

/** The values of a query itself, for `bind`. */
export function queryValues(query: ScanQuery): Record<string, Value> {
  const { scans, loopFunction, excludedUid, sort, equalKeys, since, before, referenceFilters } = query;
  const values: Record<string, Value> = { sort, excluded_uid: excludedUid ?? null };
  for (const [e, { key }] of equalKeys.entries()) values[`equal${e}`] = key;
  if (since) values.since = since.key;
  if (before) values.before = before.key;
  for (const [f, filter] of referenceFilters.entries()) {
    for (const [v, value] of padToPowerOfTwo(filter.values).entries()) values[`reference${f}_${v}`] = value;
  }
  if (loopFunction !== undefined) return { ...values, scans: JSON.stringify(scans.map(scanParameters)) };
  for (const [i, scan] of scans.entries()) {
    for (const [name, value] of Object.entries(scanParameters(scan))) values[`${name} ${i}`] = value;
  }
  return values;
}

function cachedStatement(
  purpose: string,
  query: ScanQuery,
  build: (query: ScanQuery, placeholder: Placeholder) => string,
): Statement {
  // The parameters of scans that are only padding are null, which equals nothing, so they return no rows.
  const scans = query.loopFunction ? query.scans.slice(0, 1) : padToPowerOfTwo(query.scans);
  const padded = { ...query, scans };
  const key = `${purpose}|${textKey(padded)}`;
  let statement = statements.get(key);
  if (!statement) {
    const names: string[] = [];
    const placeholder: Placeholder = (name) =>
      `$${(names.includes(name) ? names.indexOf(name) : names.push(name) - 1) + 1}`;
    const text = build(padded, placeholder);
    statement = { text, bind: (values) => names.map((name) => values[name] ?? null) };
    statements.set(key, statement);
  }
  return statement;
}

/** Describes everything in a query that changes the text, and nothing that only changes parameters. */
function textKey(query: ScanQuery): string {
  const { scans, excludedUid, sort, order, equalKeys, since, before, referenceFilters, ...flags } = query;
  const scanKeys = scans.map(scanTextKey).join(' ');
  const terms = order.terms.map((term) => `${term.field}${term.descending ? '-' : '+'}`).join('');
  const fields = equalKeys.map(({ field }) => field).join(',');
  const references = referenceFilters
    .map(({ field, values, excludes }) => `${excludes ? '-' : '+'}${field}${padToPowerOfTwo(values).length}`)
    .join('');
  return [
    ...[
      scanKeys,
      excludedUid === undefined,
      sort,
      terms,
      order.uidDescending,
      fields,
      since?.field,
      before?.field,
      references,
    ],
    ...[flags.afterCursor, flags.sortsUnion, flags.loopFunction, flags.scansOverlap, flags.withBodies],
    flags.binaryCollation,
  ].join('|');
}

const direction = (descending: boolean): string => (descending ? 'DESC' : 'ASC');

function buildPage(query: ScanQuery, placeholder: Placeholder): string {
  const { order, scans } = query;
  const keys = order.terms.map((_, i) => `k${i}`);
  const orderTerms = orderTermsOf(order);
  const orderBy = `ORDER BY ${orderTerms.join(', ')}`;
  const columns = [...keys, 'uid'].join(', ');
  const window = `LIMIT ${placeholder('limit')} OFFSET ${placeholder('skip')}`;
  // Cuts nothing off. It only makes SQLite sort the union instead of merging it.
  const unionLimit = query.sortsUnion && scans.length > 1 ? ` LIMIT ${placeholder('union_limit')}` : '';
  const scanPage = (i: number): string => {
    const scan = buildScan(query, i, placeholder);
    return `SELECT ${columns} FROM (${scan} ${orderBy} LIMIT ${placeholder('scan_limit')}) AS s${i}`;
  };
  const page =
    scans.length === 1
      ? `${buildScan(query, 0, placeholder)} ${orderBy} ${window}`
      : `SELECT ${columns} FROM (${scans
          .map((_, i) => scanPage(i))
          .join(unionOf(query))}${unionLimit}) AS u ${orderBy} ${window}`;
  if (!query.withBodies) return page;
  const outerOrder = orderTerms.map((term) => `p.${term}`).join(', ');
  return `SELECT ${[...keys, 'uid'].map((c) => `p.${c} AS ${c}`).join(', ')}, r.body AS body
    FROM (${page}) AS p CROSS JOIN resource r
    WHERE r.kind = ${placeholder('kind')} AND r.uid = p.uid ORDER BY ${outerOrder}`;
}

function buildFirstRows(query: ScanQuery, placeholder: Placeholder): string {
  const orderBy = `ORDER BY ${orderTermsOf(query.order).join(', ')}`;
  return query.scans
    .map((_, i) => {
      return `SELECT ${i} AS scan, s${i}.* FROM (${buildScan(query, i, placeholder)} ${orderBy} LIMIT 1) AS s${i}`;
    })
    .join(' UNION ALL ');
}

const orderTermsOf = ({ terms, uidDescending }: Order): string[] => [
  ...terms.map((term, i) => `k${i} ${direction(term.descending)}`),
  `uid ${direction(uidDescending)}`,
];

const unionOf = ({ scansOverlap }: ScanQuery): string => (scansOverlap ? ' UNION ' : ' UNION ALL ');

function buildCount(query: ScanQuery, placeholder: Placeholder): string {
  const unordered = { ...query, order: UNORDERED, afterCursor: false };
  const union = query.scans.map((_, i) => buildScan(unordered, i, placeholder)).join(unionOf(query));
  return `SELECT count(*) AS n FROM (${union}) AS u`;
}

/** The SELECT of one scan, or of all of them with a loop. */
function buildScan(query: ScanQuery, i: number, shared: Placeholder): string {
  const { order, sort, equalKeys, since, before, loopFunction } = query;
  const scan = query.scans[i] as Scan;
  const own: Placeholder = loopFunction ? (name) => `(l.value ->> '${name}')` : (name) => shared(`${name} ${i}`);
  const { table, uid, where } = scanTable(scan, sort, shared, own);
  let joinsResource = uid !== 'r.uid' && 'parent' in scan && scan.parent !== undefined;
  // An entry of a list has the sort key of its own order. All other sort keys are in the resource.
  const keyOf = (field: string) => {
    if (scan.from === 'list' && field === sort) return 'e.key';
    joinsResource ||= uid !== 'r.uid';
    return `(r.keys ->> '${field}')${query.binaryCollation}`;
  };
  const keys = order.terms.map((term) => keyOf(term.field));
  for (const [e, { field }] of equalKeys.entries()) where.push(`${keyOf(field)} = ${shared(`equal${e}`)}`);
  if (since) where.push(`${keyOf(since.field)} >= ${shared('since')}`);
  if (before) where.push(`${keyOf(before.field)} < ${shared('before')}`);
  if (query.excludedUid !== undefined) where.push(`${uid} <> ${shared('excluded_uid')}`);
  for (const [c, check] of scan.checks.entries()) {
    const key = check.sort === 'uid' ? "''" : keyOf(check.sort);
    where.push(listCondition(check, uid, key, (l) => own(`check${c}_${l}`)));
  }
  for (const [f, filter] of query.referenceFilters.entries()) {
    where.push(referenceCondition(filter, shared('kind'), uid, (v) => shared(`reference${f}_${v}`)));
  }
  if (query.afterCursor) {
    const directions = [...order.terms.map((term) => term.descending), order.uidDescending];
    where.push(cursorCondition([...keys, uid], directions, shared));
  }
  const columns = [...keys.map((key, k) => `${key} AS k${k}`), `${uid} AS uid`].join(', ');
  const loop = loopFunction ? `${loopFunction}(${shared('scans')}) AS l CROSS JOIN ` : '';
  const join = joinsResource ? ` CROSS JOIN resource r` : '';
  if (joinsResource) where.push(`r.kind = ${shared('kind')}`, `r.uid = ${uid}`);
  return `SELECT ${columns} FROM ${loop}${table}${join} WHERE ${where.join(' AND ')}`;
}

/**
 * The condition for rows after the cursor: one row comparison, which an index serves, or its expansion if the
 * directions are mixed.
 */
function cursorCondition(exprs: readonly string[], descending: readonly boolean[], placeholder: Placeholder): string {
  const cursor = exprs.map((_, i) => placeholder(i === exprs.length - 1 ? 'cursor_uid' : `cursor${i}`));
  const operator = (i: number) => (descending[i] ? '<' : '>');
  if (descending.every((d) => d === descending[0])) {
    return exprs.length === 1
      ? `${exprs[0]} ${operator(0)} ${cursor[0]}`
      : `(${exprs.join(', ')}) ${operator(0)} (${cursor.join(', ')})`;
  }
  const cases = exprs.map((expr, i) => {
    const equals = exprs.slice(0, i).map((e, j) => `${e} = ${cursor[j]}`);
    return `(${[...equals, `${expr} ${operator(i)} ${cursor[i]}`].join(' AND ')})`;
  });
  return `(${cases.join(' OR ')})`;
}
