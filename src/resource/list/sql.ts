import type { Value } from '../../store/store.ts';
import type { Order } from './order.ts';

/** One sorted run of rows inside the extent of a list; a page merges the heads of a few of them. */
export type Source =
  /** A subtree in uid order, straight from the primary key. */
  | { readonly from: 'range'; readonly low: string; readonly high: string; readonly withLow: boolean }
  /** The children of a uid in uid order. */
  | { readonly from: 'parent'; readonly parent: string }
  /** A list of the listing index, in one of its orders. */
  | {
      readonly from: 'list';
      readonly list: number;
      readonly without: string | undefined;
      /** Each group of lists holds the row in at least one of them. */
      readonly within: readonly (readonly number[])[];
    };

/** What shapes the text of a statement. Two requests with equal shapes share one prepared statement. */
export interface Shape {
  readonly sources: readonly Source[];
  readonly order: Order;
  readonly afterCursor: boolean;
  /** Rows must have this value under this sort key. */
  readonly equal: { readonly field: string; readonly value: string } | undefined;
  /** A row may stand in several sources, so that duplicates must go. */
  readonly overlapping: boolean;
  /** Makes text from JSON compare bytewise. */
  readonly bytewise: string;
}

export interface Statement {
  readonly text: string;
  bind(values: Readonly<Record<string, Value>>): Value[];
}

const statements = new Map<string, Statement>();

/** Rows of one page with their sort keys `k0`, `k1`…, in order. Binds kind, limit, skip, inner, cursor and sources. */
export const pageStatement = (shape: Shape): Statement => cached('page', shape, buildPage);

/** How many rows the sources hold together, by looking at each of them. */
export const countStatement = (shape: Shape): Statement => cached('count', shape, buildCount);

/** The values that `shape` itself contributes to `bind`. */
export function sourceValues(shape: Shape): Record<string, Value> {
  const values: Record<string, Value> = { sort: shape.equal?.field ?? shape.order.terms[0]?.field ?? 'uid' };
  if (shape.equal) values.equal = shape.equal.value;
  shape.sources.forEach((source, i) => {
    if (source.from === 'range') Object.assign(values, { [`low${i}`]: source.low, [`high${i}`]: source.high });
    else if (source.from === 'parent') values[`parent${i}`] = source.parent;
    else {
      values[`list${i}`] = source.list;
      if (source.without !== undefined) values[`without${i}`] = source.without;
      for (const [g, group] of source.within.entries()) {
        for (const [m, list] of group.entries()) values[`within${i}_${g}_${m}`] = list;
      }
    }
  });
  return values;
}

function cached(purpose: string, shape: Shape, build: (shape: Shape, slot: Slot) => string): Statement {
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
function describe({ sources, order, afterCursor, equal, overlapping, bytewise }: Shape): string {
  const parts = sources.map((s) => {
    if (s.from === 'range') return s.withLow ? 'R' : 'r';
    if (s.from === 'parent') return 'p';
    return `l${s.without === undefined ? '' : 'x'}${s.within.map((group) => group.length).join(',')}`;
  });
  const terms = order.terms.map((term) => `${term.field}${term.descending ? '-' : '+'}`).join('');
  return [parts.join(' '), terms, order.uidDescending, afterCursor, equal !== undefined, overlapping, bytewise].join(
    '|',
  );
}

/** Names a parameter and answers its `$n`; the same name is the same parameter. */
type Slot = (name: string) => string;

const direction = (descending: boolean): string => (descending ? 'DESC' : 'ASC');

function buildPage(shape: Shape, slot: Slot): string {
  const { order, sources } = shape;
  const keys = order.terms.map((_, i) => `k${i}`);
  const sorted = [
    ...order.terms.map((term, i) => `k${i} ${direction(term.descending)}`),
    `uid ${direction(order.uidDescending)}`,
  ];
  const by = `ORDER BY ${sorted.join(', ')}`;
  const columns = [...keys, 'uid'].join(', ');
  const window = `LIMIT ${slot('limit')} OFFSET ${slot('skip')}`;
  const page =
    sources.length === 1
      ? `${selectFrom(shape, 0, slot)} ${by} ${window}`
      : `SELECT ${columns} FROM (${sources
          .map((_, i) => `SELECT ${columns} FROM (${selectFrom(shape, i, slot)} ${by} LIMIT ${slot('inner')}) AS s${i}`)
          .join(shape.overlapping ? ' UNION ' : ' UNION ALL ')}) AS u ${by} ${window}`;
  const outer = sorted.map((term) => `p.${term}`).join(', ');
  return `SELECT ${[...keys, 'uid'].map((c) => `p.${c} AS ${c}`).join(', ')}, r.body AS body
    FROM (${page}) AS p JOIN resource r ON r.kind = ${slot('kind')} AND r.uid = p.uid ORDER BY ${outer}`;
}

function buildCount(shape: Shape, slot: Slot): string {
  const flat = { ...shape, order: { terms: [], uidDescending: false }, afterCursor: false };
  const union = shape.sources
    .map((_, i) => selectFrom(flat, i, slot))
    .join(shape.overlapping ? ' UNION ' : ' UNION ALL ');
  return `SELECT count(*) AS n FROM (${union}) AS u`;
}

function selectFrom(shape: Shape, i: number, slot: Slot): string {
  const { order, equal } = shape;
  const source = shape.sources[i] as Source;
  const at = (name: string) => slot(`${name}${i}`);
  if (source.from !== 'list') {
    const where = [`kind = ${slot('kind')}`];
    if (source.from === 'parent') where.push(`parent = ${at('parent')}`);
    else where.push(`uid ${source.withLow ? '>=' : '>'} ${at('low')}`, `uid < ${at('high')}`);
    if (shape.afterCursor) where.push(after(['uid'], [order.uidDescending], slot));
    return `SELECT uid FROM resource WHERE ${where.join(' AND ')}`;
  }
  // The first sort key stands in the index row itself, unless the index serves the equality filter instead.
  const exprs = order.terms.map((term, t) =>
    t === 0 && !equal ? 'e.key' : `(r.keys ->> '${term.field}')${shape.bytewise}`,
  );
  const joins = exprs.some((expr) => expr !== 'e.key');
  const where = [`e.list = ${at('list')}`, `e.sort = ${slot('sort')}`];
  if (equal) where.push(`e.key = ${slot('equal')}`);
  if (source.without !== undefined) where.push(`e.uid <> ${at('without')}`);
  if (shape.afterCursor) {
    const directions = [...order.terms.map((term) => term.descending), order.uidDescending];
    where.push(after([...exprs, 'e.uid'], directions, slot));
  }
  for (const [g, group] of source.within.entries()) {
    const lists = group.map((_, m) => slot(`within${i}_${g}_${m}`)).join(', ');
    where.push(
      `EXISTS (SELECT 1 FROM entry x WHERE x.list IN (${lists}) AND x.sort = 'uid' AND x.key = '' AND x.uid = e.uid)`,
    );
  }
  const columns = [...exprs.map((expr, k) => `${expr} AS k${k}`), 'e.uid AS uid'].join(', ');
  const join = joins ? ` JOIN resource r ON r.kind = ${slot('kind')} AND r.uid = e.uid` : '';
  return `SELECT ${columns} FROM entry e${join} WHERE ${where.join(' AND ')}`;
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
