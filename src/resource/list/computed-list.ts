import { invalid } from '../../base/errors.ts';
import type { ReadContext } from '../operation.ts';
import { pageSize } from './list.ts';
import type { PageTokens } from './page-token.ts';
import { compareBytes } from './plan.ts';

/** What a List request has, also where it lists what no table holds. */
export interface PageRequest {
  readonly pageSize: number;
  readonly pageToken: string;
  readonly orderBy: string;
  readonly skip: number;
}

/** Rows that were worked out for one request. */
export interface ComputedList<T> {
  readonly rows: readonly T[];
  /** The one field they are sorted by, and its value, which is another for each row and sorts bytewise. */
  readonly order: string;
  keyOf(row: T): string;
  /** All that the rows depend on: with anything else, a page token is none of this list. */
  readonly query: unknown;
}

/** A page of them, with what its envelope says. */
export function pageOfComputed<T>(
  ctx: ReadContext,
  tokens: PageTokens,
  request: PageRequest,
  computed: ComputedList<T>,
) {
  const { order, keyOf } = computed;
  const limit = pageSize(request.pageSize);
  if (request.skip < 0) throw invalid('skip', 'must not be negative');
  const isDescending = readOrder(request.orderBy, order);
  const query = JSON.stringify([ctx.method.id, computed.query, isDescending, ctx.caller.uid]);
  const last = request.pageToken === '' ? undefined : tokens.read(request.pageToken, query, ctx.now)?.uid;

  const compare = (a: string, b: string): number => (isDescending ? compareBytes(b, a) : compareBytes(a, b));
  const sorted = computed.rows.toSorted((a, b) => compare(keyOf(a), keyOf(b)));
  const rest = last === undefined ? sorted : sorted.filter((row) => compare(keyOf(row), last) > 0);
  const page = rest.slice(request.skip, request.skip + limit);
  const next = rest.length > request.skip + limit ? page.at(-1) : undefined;
  return {
    rows: page,
    nextPageToken: next === undefined ? '' : tokens.issue({ keys: [], uid: keyOf(next) }, query, ctx.now),
    totalCount: BigInt(sorted.length),
    skipped: request.skip,
  };
}

/** Whether the largest come first. */
function readOrder(text: string, field: string): boolean {
  const [word = field, direction = 'asc', ...rest] = text.trim().split(/\s+/).filter(Boolean);
  if (word !== field || rest.length > 0 || !/^(?:asc|desc)$/i.test(direction)) {
    throw invalid('order_by', `must be ${field}, optionally followed by asc or desc`);
  }
  return direction.toLowerCase() === 'desc';
}
