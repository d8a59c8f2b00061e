import { invalid } from '../../base/errors.ts';
import type { ReadContext } from '../operation.ts';
import { pageSize } from './list.ts';
import { type PageTokens, skipFrom } from './page-token.ts';
import { compareBytes } from './plan.ts';

/** The paging fields of a List request. */
export interface PageRequest {
  readonly pageSize: number;
  readonly pageToken: string;
  readonly orderBy: string;
  readonly skip: number;
}

/** All rows of a list that is computed for each request and not stored. */
export interface ComputedList<T> {
  readonly rows: readonly T[];
  /** The only field by which the list can be ordered. */
  readonly order: string;
  /** Returns the value of that field. It must be unique, and is compared bytewise. */
  keyOf(row: T): string;
  /** Everything that the rows depend on. A page token is valid for the same `query` only. */
  readonly query: unknown;
}

/** Returns a page of a computed list, with the other fields of the response. */
export function pageOfComputed<T>(
  ctx: ReadContext,
  pageTokens: PageTokens,
  request: PageRequest,
  computed: ComputedList<T>,
) {
  const { order, keyOf } = computed;
  const limit = pageSize(request.pageSize);
  const isDescending = parseDirection(request.orderBy, order);
  const query = JSON.stringify([ctx.method.id, computed.query, isDescending, ctx.caller.uid]);
  const cursor = request.pageToken === '' ? undefined : pageTokens.read(request.pageToken, query, ctx.now);
  const { skip, skipped } = skipFrom(cursor, request.skip);

  const compare = (a: string, b: string): number => (isDescending ? compareBytes(b, a) : compareBytes(a, b));
  const sorted = computed.rows.toSorted((a, b) => compare(keyOf(a), keyOf(b)));
  const remaining = cursor ? sorted.filter((row) => compare(keyOf(row), cursor.uid) > 0) : sorted;
  const page = remaining.slice(skip, skip + limit);
  const next = remaining.length > skip + limit ? page.at(-1) : undefined;
  return {
    rows: page,
    nextPageToken: next === undefined ? '' : pageTokens.issue({ keys: [], uid: keyOf(next), skipped }, query, ctx.now),
    totalCount: BigInt(sorted.length),
    skipped,
  };
}

/** Parses `order_by` and returns whether the order is descending. */
function parseDirection(text: string, field: string): boolean {
  const [word = field, direction = 'asc', ...rest] = text.trim().split(/\s+/).filter(Boolean);
  if (word !== field || rest.length > 0 || !/^(?:asc|desc)$/i.test(direction)) {
    throw invalid('order_by', `must be ${field}, optionally followed by asc or desc`);
  }
  return direction.toLowerCase() === 'desc';
}
