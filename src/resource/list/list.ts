import { create, type DescMessage, type Message } from '@bufbuild/protobuf';
import { invalid } from '../../base/errors.ts';
import type { MaybePromise } from '../../base/maybe-promise.ts';
import { type UIDPFilter, UIDPFilterSchema } from '../../contract/gen/platform/common/v1/uidp.platform_pb.js';
import type { Reader } from '../../store/store.ts';
import type { Resource } from '../definition.ts';
import type { ReadContext } from '../operation.ts';
import { exists } from '../read.ts';
import { decodeRow, findMessages } from '../read-message.ts';
import { indexedPlan } from './indexed-plan.ts';
import { parseOrder } from './order.ts';
import type { CountedTotal, Cursor, PageTokens } from './page-token.ts';
import type { Filter, PageRow } from './plan.ts';
import { requestFilters } from './request-filters.ts';
import { uidListPlan } from './uid-list-plan.ts';
import { type VisibleRange, visibleRange } from './visible-range.ts';

/** What every List request has. */
export interface ListRequest extends Message {
  readonly uidp?: UIDPFilter;
  readonly pageSize: number;
  readonly pageToken: string;
  readonly orderBy: string;
  readonly skip: number;
  readonly [filter: string]: unknown;
}

/** A page, and what its envelope says. */
export interface Page {
  readonly messages: Message[];
  readonly nextPageToken: string;
  readonly totalCount: number;
  readonly skipped: number;
}

export type Lister = (ctx: ReadContext, request: ListRequest) => Promise<Page>;

const DEFAULT_PAGE = 50;
const MAX_PAGE = 200;
const STANDARD = new Set(['uidp', 'page_size', 'page_token', 'order_by', 'skip']);

/**
 * Reads pages of `resource` for requests of type `input`; an undeclared filter stops the server from starting. What
 * `always` asks for holds for every request.
 */
export function createLister(
  resource: Resource,
  input: DescMessage,
  tokens: PageTokens,
  always: readonly Filter[] = [],
): Lister {
  const { listedUnder, nameFilter: named } = resource;
  const naming = input.fields.filter(({ name }) => named?.fields.includes(name));
  const own = input.fields.filter((field) => {
    return !STANDARD.has(field.name) && field.name !== listedUnder && !naming.includes(field);
  });
  const select = requestFilters(resource, own);
  const parent = input.fields.find(({ name }) => name === listedUnder)?.localName;

  return async (ctx, request) => {
    const limit = pageSize(request.pageSize);
    if (request.skip < 0) throw invalid('skip', 'must not be negative');
    const order = parseOrder(resource, request.orderBy);
    const asked = select(request);
    const selection = { ...asked, filters: [...always, ...asked.filters] };
    const place = parent ? create(UIDPFilterSchema, { childrenOf: request[parent] as string }) : request.uidp;
    // The caller is part of it by identity, not by scope: a grant made while somebody pages must not break their token.
    const names = naming.map(({ localName }) => request[localName]);
    const query = JSON.stringify([resource.kind, place ?? null, selection, order, ctx.caller.uid, ...names]);
    const cursor = request.pageToken === '' ? undefined : tokens.read(request.pageToken, query, ctx.now);

    const reach = ctx.caller.reach(ctx.method.capabilities);
    const uids = await named?.uids(ctx.db, request, reach);
    const reached = uids ? { uids: [...uids].sort() } : visibleRange(resource, place, reach);
    const extent = (await holdsChildren(ctx.db, resource, place?.childrenOf)) ? reached : NOTHING;
    const plan =
      'uids' in extent
        ? await uidListPlan(ctx.db, resource, extent.uids, selection, order)
        : await indexedPlan(ctx.db, resource, extent, selection, order, cursor?.countedTotal);
    const totalCount = await plan.total();
    // One row more than asked for tells whether there is a next page.
    const rows = await plan.page({ cursor, limit: limit + 1, skip: request.skip });
    const page = rows.slice(0, limit);
    const last = rows.length > limit ? page.at(-1) : undefined;
    return {
      messages: await messagesOf(ctx.db, resource, page),
      nextPageToken: last
        ? tokens.issue(cursorAt(last, order.terms.length, await plan.countedTotal()), query, ctx.now)
        : '',
      totalCount,
      skipped: request.skip,
    };
  };
}

function messagesOf(db: Reader, resource: Resource, page: readonly PageRow[]): MaybePromise<Message[]> {
  if (db.rowCache)
    return findMessages(
      db,
      resource,
      page.map(({ uid }) => uid),
    );
  return page.map(({ uid, body }) => decodeRow(db, resource, uid, body as Uint8Array));
}

const NOTHING: VisibleRange = { uids: [] };

/** Below a parent that cannot nest, descendants are children; but to what lies above that parent they are not. */
async function holdsChildren(db: Reader, resource: Resource, uid: string | undefined): Promise<boolean> {
  if (resource.nests || !uid) return true;
  for (const kind of resource.parents) if (await exists(db, kind, uid)) return true;
  return false;
}

/** How many results a page holds that was asked to hold so many. */
export function pageSize(asked: number): number {
  if (asked < 0) throw invalid('page_size', `must be 1 to ${MAX_PAGE}, or 0 for ${DEFAULT_PAGE}`);
  return asked === 0 ? DEFAULT_PAGE : Math.min(asked, MAX_PAGE);
}

function cursorAt(row: PageRow, terms: number, tally: CountedTotal | undefined): Cursor {
  return { uid: row.uid, keys: Array.from({ length: terms }, (_, i) => row[`k${i}`] as string), countedTotal: tally };
}
