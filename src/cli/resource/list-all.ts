import type { DescMethod, JsonObject, JsonValue } from '@bufbuild/protobuf';
import type { Api } from '../client/api.ts';

/** The page size limit of the API. */
const MAX_PAGE_SIZE = 200;

export interface ListOptions {
  readonly method: DescMethod;
  /** The JSON name of the list in the response. */
  readonly key: string;
  /** The values of the route's variables. */
  readonly path?: readonly string[];
  readonly fields: Readonly<Record<string, JsonValue>>;
  readonly limit: number;
  /** Called after each page except the last. */
  readonly onPage?: (count: number, total: string) => void;
}

/** Reads all pages of a list, up to `limit` results, and returns them as one response with the next page token. */
export async function listAll(api: Api, options: ListOptions): Promise<JsonObject> {
  const { method, key, path = [], fields, limit, onPage } = options;
  const size = Number(fields.page_size ?? MAX_PAGE_SIZE);
  const items: JsonValue[] = [];
  let first: JsonObject | undefined;
  let next: JsonValue | undefined;
  do {
    // A skip counts from the page token, so only the first request has it.
    const position = next === undefined ? fields : { ...fields, skip: undefined, page_token: next };
    const page = await api.call(method, {
      path,
      fields: { ...position, page_size: Math.min(size, limit - items.length) },
    });
    first ??= page;
    items.push(...((page[key] ?? []) as JsonValue[]));
    next = page.nextPageToken || undefined;
    if (next !== undefined) onPage?.(items.length, String(page.totalCount ?? ''));
  } while (next !== undefined && items.length < limit);
  const { nextPageToken: _firstToken, [key]: _firstPage, ...rest } = first;
  return { [key]: items, ...(next !== undefined && { nextPageToken: next }), ...rest };
}
