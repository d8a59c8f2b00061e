import { createLru } from '../../base/lru.ts';
import type { Value } from '../../store/store.ts';
import { type Order, UNORDERED } from './order.ts';
import { padToPowerOfTwo } from './pad.ts';
import type { Filter } from './plan.ts';
import { formOf, isListed, refers, type Slot, type Source, tableOf, valuesOf } from './source.ts';

/** What shapes the text of a statement. Two requests with equal shapes share one prepared statement. */
export interface Shape {
  readonly sources: readonly Source[];
  /** One uid that is left out. */
  readonly except: string | undefined;
  /** The order of the index rows that are read. */
  readonly sort: string;
  readonly order: Order;
  readonly afterCursor: boolean;
  /** Rows must have these values under these sort keys. */
  readonly equals: readonly { readonly field: string; readonly key: string }[];
  /** Rows must have at least this value under this sort key. */
  readonly since: { readonly field: string; readonly key: string } | undefined;
  /** Rows must have one of these values of each of these references, or none. */
  readonly referring: readonly Filter[];
  /**
   * Whether what the sources bring is sorted rather than merged. SQLite merges by a chain as long as there are sources, so
   * that each row costs as many steps: 100 sources took 40 ms. Sorting is for windows of some hundred rows only.
   */
  readonly sorts: boolean;
  /** The table to loop over the sources by, which then are of one form and sorted by `order`; see `Reader.loopOver`. */
  readonly loopOver: string | undefined;
  /** A row may stand in several sources, so that duplicates must go. */
  readonly overlapping: boolean;
  /** Whether a page brings the messages of its rows: where there is a memory, it has most of them. */
  readonly bodies: boolean;
  /** Makes text from JSON compare bytewise. */
  readonly bytewise: string;
}

export interface Statement {
  readonly text: string;
  bind(values: Readonly<Record<string, Value>>): Value[];
}

/** As many as a connection keeps prepared. */
const statements = createLru<string, Statement>(500);

/** Rows of one page with their sort keys `k0`, `k1`…, in order. Binds kind, limit, skip, inner, cursor and sources. */
export const pageStatement = (shape: Shape): Statement => cached('page', shape, buildPage);

/** The first row of each source, with the number of the source. Binds kind, cursor and sources. */
export const headsStatement = (shape: Shape): Statement => cached('heads', shape, buildHeads);

/** How many rows the sources hold together, by looking at each of them. */
export const countStatement = (shape: Shape): Statement => cached('count', shape, buildCount);

/** The values that `shape` itself contributes to `bind`. */
export function sourceValues(shape: Shape): Record<string, Value> {
  const { sources, loopOver, except, sort, equals, since, referring } = shape;
  const values: Record<string, Value> = { sort, except: except ?? null };
  for (const [e, { key }] of equals.entries()) values[`equal${e}`] = key;
  if (since) values.since = since.key;
  for (const [f, filter] of referring.entries()) {
    for (const [v, value] of padToPowerOfTwo(filter.values).entries()) values[`referring${f}_${v}`] = value;
  }
  if (loopOver !== undefined) return { ...values, sources: JSON.stringify(sources.map(valuesOf)) };
  for (const [i, source] of sources.entries()) {
    for (const [name, value] of Object.entries(valuesOf(source))) values[`${name} ${i}`] = value;
  }
  return values;
}

function cached(purpose: string, asked: Shape, build: (shape: Shape, slot: Slot) => string): Statement {
  // The values of sources that only fill up are null, which equals nothing: they have no rows.
  const shape = { ...asked, sources: asked.loopOver ? asked.sources.slice(0, 1) : padToPowerOfTwo(asked.sources) };
  const key = `${purpose}|${describe(shape)}`;
  let found = statements.get(key);
  if (!found) {
    const names: string[] = [];
    const slot: Slot = (name) => `$${(names.includes(name) ? names.indexOf(name) : names.push(name) - 1) + 1}`;
    const text = build(shape, slot);
    found = { text, bind: (values) => names.map((name) => values[name] ?? null) };
    statements.set(key, found);
  }
  return found;
}

/** Everything of a shape that changes the text, and nothing that only changes parameters. */
function describe({ sources, except, sort, order, equals, since, referring, ...flags }: Shape): string {
  const parts = sources.map(formOf);
  const terms = order.terms.map((term) => `${term.field}${term.descending ? '-' : '+'}`).join('');
  const fields = equals.map(({ field }) => field).join(',');
  const values = referring
    .map(({ field, values, excludes: lacks }) => `${lacks ? '-' : '+'}${field}${padToPowerOfTwo(values).length}`)
    .join('');
  return [
    ...[parts.join(' '), except === undefined, sort, terms, order.uidDescending, fields, since?.field, values],
    ...[flags.afterCursor, flags.sorts, flags.loopOver, flags.overlapping, flags.bodies, flags.bytewise],
  ].join('|');
}

const direction = (descending: boolean): string => (descending ? 'DESC' : 'ASC');

function buildPage(shape: Shape, slot: Slot): string {
  const { order, sources } = shape;
  const keys = order.terms.map((_, i) => `k${i}`);
  const sorted = sortedBy(order);
  const by = `ORDER BY ${sorted.join(', ')}`;
  const columns = [...keys, 'uid'].join(', ');
  const window = `LIMIT ${slot('limit')} OFFSET ${slot('skip')}`;
  // A limit that changes nothing but the plan.
  const enough = shape.sorts && sources.length > 1 ? ` LIMIT ${slot('enough')}` : '';
  const page =
    sources.length === 1
      ? `${selectFrom(shape, 0, slot)} ${by} ${window}`
      : `SELECT ${columns} FROM (${sources
          .map((_, i) => `SELECT ${columns} FROM (${selectFrom(shape, i, slot)} ${by} LIMIT ${slot('inner')}) AS s${i}`)
          .join(shape.overlapping ? ' UNION ' : ' UNION ALL ')}${enough}) AS u ${by} ${window}`;
  if (!shape.bodies) return page;
  const outer = sorted.map((term) => `p.${term}`).join(', ');
  return `SELECT ${[...keys, 'uid'].map((c) => `p.${c} AS ${c}`).join(', ')}, r.body AS body
    FROM (${page}) AS p CROSS JOIN resource r WHERE r.kind = ${slot('kind')} AND r.uid = p.uid ORDER BY ${outer}`;
}

function buildHeads(shape: Shape, slot: Slot): string {
  const by = `ORDER BY ${sortedBy(shape.order).join(', ')}`;
  return shape.sources
    .map((_, i) => `SELECT ${i} AS source, s${i}.* FROM (${selectFrom(shape, i, slot)} ${by} LIMIT 1) AS s${i}`)
    .join(' UNION ALL ');
}

const sortedBy = ({ terms, uidDescending }: Order): string[] => [
  ...terms.map((term, i) => `k${i} ${direction(term.descending)}`),
  `uid ${direction(uidDescending)}`,
];

function buildCount(shape: Shape, slot: Slot): string {
  const flat = { ...shape, order: UNORDERED, afterCursor: false };
  const union = shape.sources
    .map((_, i) => selectFrom(flat, i, slot))
    .join(shape.overlapping ? ' UNION ' : ' UNION ALL ');
  return `SELECT count(*) AS n FROM (${union}) AS u`;
}

function selectFrom(shape: Shape, i: number, slot: Slot): string {
  const { order, sort, equals, since } = shape;
  const source = shape.sources[i] as Source;
  const at: Slot = shape.loopOver ? (name) => `(l.value ->> '${name}')` : (name) => slot(`${name} ${i}`);
  const { table, uid, where } = tableOf(source, sort, slot, at);
  let joins = uid !== 'r.uid' && 'parent' in source && source.parent !== undefined;
  // The index rows of a list carry the key that they are read by; all others are in the resource.
  const keyOf = (field: string) => {
    if (source.from === 'list' && field === sort) return 'e.key';
    joins ||= uid !== 'r.uid';
    return `(r.keys ->> '${field}')${shape.bytewise}`;
  };
  const keys = order.terms.map((term) => keyOf(term.field));
  for (const [e, { field }] of equals.entries()) where.push(`${keyOf(field)} = ${slot(`equal${e}`)}`);
  if (since) where.push(`${keyOf(since.field)} >= ${slot('since')}`);
  if (shape.except !== undefined) where.push(`${uid} <> ${slot('except')}`);
  for (const [c, check] of source.checks.entries()) {
    const key = check.sort === 'uid' ? "''" : keyOf(check.sort);
    where.push(isListed(check, uid, key, (l) => at(`check${c}_${l}`)));
  }
  for (const [f, filter] of shape.referring.entries()) {
    where.push(refers(filter, slot('kind'), uid, (v) => slot(`referring${f}_${v}`)));
  }
  if (shape.afterCursor) {
    const directions = [...order.terms.map((term) => term.descending), order.uidDescending];
    where.push(after([...keys, uid], directions, slot));
  }
  const columns = [...keys.map((key, k) => `${key} AS k${k}`), `${uid} AS uid`].join(', ');
  const loop = shape.loopOver ? `${shape.loopOver}(${slot('sources')}) AS l CROSS JOIN ` : '';
  const join = joins ? ` CROSS JOIN resource r` : '';
  if (joins) where.push(`r.kind = ${slot('kind')}`, `r.uid = ${uid}`);
  return `SELECT ${columns} FROM ${loop}${table}${join} WHERE ${where.join(' AND ')}`;
}

/** Rows behind the cursor: one row comparison, which an index serves, or its expansion when directions are mixed. */
function after(exprs: readonly string[], descending: readonly boolean[], slot: Slot): string {
  const cursor = exprs.map((_, i) => slot(i === exprs.length - 1 ? 'cursor_uid' : `cursor${i}`));
  const sign = (i: number) => (descending[i] ? '<' : '>');
  if (descending.every((d) => d === descending[0])) {
    return exprs.length === 1
      ? `${exprs[0]} ${sign(0)} ${cursor[0]}`
      : `(${exprs.join(', ')}) ${sign(0)} (${cursor.join(', ')})`;
  }
  const cases = exprs.map((expr, i) => {
    const equals = exprs.slice(0, i).map((e, j) => `${e} = ${cursor[j]}`);
    return `(${[...equals, `${expr} ${sign(i)} ${cursor[i]}`].join(' AND ')})`;
  });
  return `(${cases.join(' OR ')})`;
}
