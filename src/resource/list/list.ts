import { create, type DescField, type DescMessage, fromBinary, type Message } from '@bufbuild/protobuf';
import { invalid } from '../../base/errors.ts';
import { type UIDPFilter, UIDPFilterSchema } from '../../contract/gen/platform/common/v1/uidp.platform_pb.js';
import type { ReadContext } from '../context.ts';
import type { Resource } from '../definition.ts';
import { extentOf } from './extent.ts';
import { finitePlan } from './finite.ts';
import { indexedPlan } from './indexed.ts';
import { parseOrder } from './order.ts';
import type { PageTokens } from './page-token.ts';
import type { Filter, PageRow } from './plan.ts';

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
const MAX_FILTER_VALUES = 100;
const STANDARD = new Set(['uidp', 'page_size', 'page_token', 'order_by', 'skip']);

/** Reads pages of `resource` for requests of type `input`; an undeclared filter stops the server from starting. */
export function createLister(resource: Resource, input: DescMessage, tokens: PageTokens): Lister {
  const { listedUnder } = resource;
  const filterFields = input.fields.filter(({ name }) => !STANDARD.has(name) && name !== listedUnder);
  for (const { name } of filterFields) {
    if (!(name in resource.sortKeys) && !(name in (resource.facets ?? {}))) {
      throw new Error(`${input.typeName}.${name}: the ${resource.kind} resource declares no such filter`);
    }
  }

  return async (ctx, request) => {
    const limit = pageSize(request.pageSize);
    if (request.skip < 0) throw invalid('skip', 'must not be negative');
    const order = parseOrder(resource, request.orderBy);
    const filters = readFilters(filterFields, request);
    const under = listedUnder && create(UIDPFilterSchema, { childrenOf: request[listedUnder] as string });
    // The caller is part of it by identity, not by scope: a grant made while somebody pages must not break their token.
    const query = JSON.stringify([resource.kind, under || request.uidp || null, filters, order, ctx.caller.uid]);
    const cursor = request.pageToken === '' ? undefined : tokens.read(request.pageToken, query, ctx.now);

    const extent = extentOf(resource, under || request.uidp, ctx.caller.reach(ctx.method.capabilities));
    const plan =
      'uids' in extent
        ? await finitePlan(ctx.db, resource, extent.uids, filters, order)
        : await indexedPlan(ctx.db, resource, extent.collections, filters, order);
    const totalCount = await plan.total();
    // One row more than asked for tells whether there is a next page.
    const rows = await plan.page({ cursor, limit: limit + 1, skip: request.skip });
    const page = rows.slice(0, limit);
    const last = rows.length > limit ? page.at(-1) : undefined;
    return {
      messages: page.map((row) => fromBinary(resource.schema, row.body)),
      nextPageToken: last ? tokens.issue(cursorAt(last, order.terms.length), query, ctx.now) : '',
      totalCount,
      skipped: request.skip,
    };
  };
}

function pageSize(asked: number): number {
  if (asked < 0) throw invalid('page_size', `must be 1 to ${MAX_PAGE}, or 0 for ${DEFAULT_PAGE}`);
  return asked === 0 ? DEFAULT_PAGE : Math.min(asked, MAX_PAGE);
}

function cursorAt(row: PageRow, terms: number) {
  return { uid: row.uid, keys: Array.from({ length: terms }, (_, i) => row[`k${i}`] as string) };
}

function readFilters(fields: readonly DescField[], request: Message): Filter[] {
  const holder = request as unknown as Record<string, unknown>;
  return fields.flatMap(({ name, localName }) => {
    const value = holder[localName];
    const values = (Array.isArray(value) ? value : [value]).filter((v) => v !== undefined && v !== '' && v !== 0);
    if (values.length === 0) return [];
    if (values.length > MAX_FILTER_VALUES) throw invalid(name, `must have at most ${MAX_FILTER_VALUES} values`);
    return [{ field: name, values: values.map(String) }];
  });
}
