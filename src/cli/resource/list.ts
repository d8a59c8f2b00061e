import type { DescMethod, JsonObject, JsonValue } from '@bufbuild/protobuf';
import type { Api } from '../client/api.ts';

/** The most that a page holds. */
const PAGE = 200;

export interface ListOptions {
  readonly method: DescMethod;
  /** Where the answer has its list. */
  readonly key: string;
  /** For the variables of the route. */
  readonly path?: readonly string[];
  readonly fields: Readonly<Record<string, JsonValue>>;
  readonly limit: number;
  /** Told after each page but the last. */
  readonly onPage?: (count: number, total: string) => void;
}

/** Follows the pages of a list and answers one envelope: all results, or `limit` of them and where to go on. */
export async function listAll(api: Api, options: ListOptions): Promise<JsonObject> {
  const { method, key, path = [], fields, limit, onPage } = options;
  const size = Number(fields.page_size ?? PAGE);
  const found: JsonValue[] = [];
  let first: JsonObject | undefined;
  let next: JsonValue | undefined;
  do {
    // A skip counts from the page token, so it is for the first page alone.
    const place = next === undefined ? fields : { ...fields, skip: undefined, page_token: next };
    const page = await api.call(method, {
      path,
      fields: { ...place, page_size: Math.min(size, limit - found.length) },
    });
    first ??= page;
    found.push(...((page[key] ?? []) as JsonValue[]));
    next = page.nextPageToken || undefined;
    if (next !== undefined) onPage?.(found.length, String(page.totalCount ?? ''));
  } while (next !== undefined && found.length < limit);
  const { nextPageToken: _one, [key]: _list, ...envelope } = first;
  return { [key]: found, ...(next !== undefined && { nextPageToken: next }), ...envelope };
}
