import { create, type DescMessage, type Message, type MessageShape } from '@bufbuild/protobuf';
import { invalid } from '../../base/errors.ts';
import type { MaybePromise } from '../../base/maybe-promise.ts';
import { mapInSlices } from '../../base/slices.ts';
import type { Uid } from '../../base/uid.ts';
import { type UIDPFilter, UIDPFilterSchema } from '../../contract/gen/platform/common/v1/uidp.platform_pb.js';
import type { Reader } from '../../store/store.ts';
import type { Resource } from '../definition.ts';
import type { ReadContext } from '../operation.ts';
import { exists } from '../read.ts';
import { decodeRow, findMessages } from '../read-message.ts';
import { requireListReach } from '../require-capabilities.ts';
import { collectionPlan } from './collection-plan.ts';
import type { Filter } from './conditions.ts';
import { parseOrder } from './order.ts';
import { type Cursor, type PageTokens, skipFrom } from './page-token.ts';
import type { PageRow } from './plan.ts';
import { createFilterReader } from './request-filters.ts';
import { requirePlaces } from './require-places.ts';
import { uidListPlan } from './uid-list-plan.ts';
import { readHierarchy, type VisibleRange, visibleRange } from './visible-range.ts';

/*
 * How a List request is served:
 * 1. order.ts parses `order_by`. request-filters.ts reads the filters of the request into conditions (conditions.ts).
 *    A new filter needs no code here: declare it in the resource as a facet, a reference or in `filters`
 *    (../definition.ts).
 * 2. page-token.ts makes page tokens and reads them. A token has the position of the last row, the cursor.
 * 3. visible-range.ts combines the hierarchy filter with the reach of the caller. The result is the collections to read,
 *    or a few uids.
 *    require-places.ts refuses a request that names a place which the caller cannot see.
 * 4. A plan (plan.ts) counts the list and reads the page. A few uids are read and sorted in memory (uid-list-plan.ts).
 *    Collections are read by the listing index (indexed-plan.ts), or row by row if the list needs a part of the index that
 *    is being built (collection-plan.ts):
 *    - split-conditions.ts divides the conditions by the kind of index that serves them.
 *    - index-lists.ts finds the lists of the listing index, and index-counts.ts counts rows from their sizes.
 *    - access-path.ts chooses the index and returns the scans (scan.ts), which are ranges of that index.
 *    - prune-scans.ts drops scans that cannot have a row on the page.
 *    - list-sql.ts makes the SQL that reads and merges the scans, with that of each scan from scan-sql.ts.
 * 5. This file decodes the rows and issues the next page token.
 */

/** The fields that every List request has. */
export interface ListRequest extends Message {
  readonly uidp?: UIDPFilter;
  readonly pageSize: number;
  readonly pageToken: string;
  readonly orderBy: string;
  readonly skip: number;
  readonly [filter: string]: unknown;
}

/** A page and the other fields of a List response. */
export interface Page<M extends Message = Message> {
  readonly messages: M[];
  readonly nextPageToken: string;
  readonly totalCount: number;
  readonly skipped: number;
}

export type Lister<M extends Message = Message> = (ctx: ReadContext, request: ListRequest) => Promise<Page<M>>;

const DEFAULT_PAGE = 50;
const MAX_PAGE = 200;
/** A page of more bytes is decoded in slices. */
const MAX_UNSLICED = 256 * 1024;
const STANDARD_FIELDS = new Set(['uidp', 'page_size', 'page_token', 'order_by', 'skip']);

/**
 * Returns a function that reads pages of `resource` for requests of type `input`. Throws if the request has a filter
 * that the resource does not declare, so that the server does not start. `fixedFilters` apply to every request.
 * `allKinds` has the kinds that `ancestors_of` can name.
 *
 * A caller who cannot list such resources anywhere is refused. So is a request that names a place which does not exist or
 * which the caller cannot see (require-places.ts). A list of a visible place may be empty. In v1, lists are empty in all
 * of these cases, because v1 has no error for them (specification, section 7).
 */
export function createLister<S extends DescMessage>(
  resource: Resource<S>,
  input: DescMessage,
  pageTokens: PageTokens,
  fixedFilters: readonly Filter[] = [],
  allKinds: Iterable<string> = [resource.kind],
): Lister<MessageShape<S>> {
  const { listedUnder, lookupFilter: nameFilter } = resource;
  const nameFields = input.fields.filter(({ name }) => nameFilter?.fields.includes(name));
  const filterFields = input.fields.filter((field) => {
    return !STANDARD_FIELDS.has(field.name) && field.name !== listedUnder && !nameFields.includes(field);
  });
  const readConditions = createFilterReader(resource, filterFields);
  const parentField = input.fields.find(({ name }) => name === listedUnder)?.localName;
  const placeField = input.fields.find(({ name }) => name === resource.parentFilter)?.localName;

  return async (ctx, request) => {
    const limit = pageSize(request.pageSize);
    const order = parseOrder(resource, request.orderBy);
    const requested = readConditions(request);
    const conditions = { ...requested, filters: [...fixedFilters, ...requested.filters] };
    const uidp = parentField ? create(UIDPFilterSchema, { childrenOf: request[parentField] as string }) : request.uidp;
    // Includes the caller but not its grants: a grant that is made between two pages must not invalidate the page
    // token.
    const names = nameFields.map(({ localName }) => request[localName]);
    const query = JSON.stringify([resource.kind, uidp ?? null, conditions, order, ctx.caller.uid, ...names]);
    const cursor = request.pageToken === '' ? undefined : pageTokens.read(request.pageToken, query, ctx.now);
    const { skip, skipped } = skipFrom(cursor, request.skip);

    const hierarchy = readHierarchy(uidp);
    const reach = reachOf(ctx, resource);
    const uids = await nameFilter?.uids(ctx.db, request, reach);
    const visible = uids ? { uids: [...uids].sort() } : visibleRange(resource, hierarchy, reach);
    const range = (await canHaveChildren(ctx.db, resource, hierarchy.childrenOf)) ? visible : EMPTY_RANGE;
    const plan =
      'uids' in range
        ? await uidListPlan(ctx.db, resource, range.uids, conditions, order)
        : await collectionPlan(ctx.db, resource, range, conditions, order, cursor?.countedTotal);
    const totalCount = await plan.total();
    // A place with resources in it exists. Those above a uid say nothing about it.
    if (!ctx.method.isV1 && (totalCount === 0 || hierarchy.ancestorsOf !== undefined)) {
      const parent = placeField ? ((request[placeField] ?? '') as string) : '';
      await requirePlaces(ctx.db, resource, hierarchy, parent, reach, allKinds);
    }
    // Reads one row more than the page has, to know whether there is a next page.
    const rows = await plan.page({ cursor, limit: limit + 1, skip });
    const page = rows.slice(0, limit);
    const last = rows.length > limit ? page.at(-1) : undefined;
    return {
      messages: await messagesOf(ctx.db, resource, page),
      nextPageToken: last
        ? pageTokens.issue(
            { ...cursorAt(last, order.terms.length), countedTotal: await plan.countedTotal(), skipped },
            query,
            ctx.now,
          )
        : '',
      totalCount,
      skipped,
    };
  };
}

/** The reach of the caller. Refuses one that can list no such resource. Public lists and records are for everybody. */
function reachOf(ctx: ReadContext, { rootIsPublic }: Resource): readonly Uid[] {
  const isPublic = rootIsPublic || ctx.method.access === 'optional';
  return isPublic ? ctx.caller.reach(ctx.method.capabilities) : requireListReach(ctx);
}

function messagesOf<S extends DescMessage>(
  db: Reader,
  resource: Resource<S>,
  page: readonly PageRow[],
): MaybePromise<MessageShape<S>[]> {
  if (db.rowCache)
    return findMessages(
      db,
      resource,
      page.map(({ uid }) => uid),
    );
  const decode = ({ uid, body }: PageRow) => decodeRow(db, resource, uid, body as Uint8Array);
  const bytes = page.reduce((sum, { body }) => sum + (body as Uint8Array).length, 0);
  return bytes > MAX_UNSLICED ? mapInSlices(page, decode) : page.map(decode);
}

const EMPTY_RANGE: VisibleRange = { uids: [] };

/**
 * Whether a uid can be the parent of such resources. For a kind without nesting, such as tags, children are read as
 * descendants. For a uid above the real parent, such as a group, that would return grandchildren.
 */
async function canHaveChildren(db: Reader, resource: Resource, uid: string | undefined): Promise<boolean> {
  if (resource.nests || !uid) return true;
  for (const kind of resource.parents) if (await exists(db, kind, uid)) return true;
  return false;
}

/** Returns the page size for the `page_size` of a request. */
export function pageSize(requested: number): number {
  if (requested < 0) throw invalid('page_size', `must be 1 to ${MAX_PAGE}, or 0 for ${DEFAULT_PAGE}`);
  return requested === 0 ? DEFAULT_PAGE : Math.min(requested, MAX_PAGE);
}

const cursorAt = (row: PageRow, terms: number): Cursor => ({
  uid: row.uid,
  keys: Array.from({ length: terms }, (_, i) => row[`k${i}`] as string),
});
