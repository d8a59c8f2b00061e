import { setImmediate } from 'node:timers/promises';
import { clone, create, type DescMethodUnary, type Message, type MessageInitShape } from '@bufbuild/protobuf';
import type { GenMessage } from '@bufbuild/protobuf/codegenv2';
import type { MaybePromise } from '../base/maybe-promise.ts';
import { type UIDPFilter, UIDPFilterSchema } from '../contract/gen/platform/common/v1/uidp.platform_pb.js';
import { methodId } from '../contract/method.ts';
import { soleListField } from '../contract/streamed-list.ts';
import { type Operations, type ReadContext, readOf, streamOperation } from '../resource/operation.ts';
import { createViolationRenamer, type V1FieldNames } from './rename-violations.ts';
import type { RequestInitOf, RequestOf, ResponseOf } from './typed-operation.ts';

const PAGE_SIZE = 200;

/** A v2 List method. */
type PagedMethod = DescMethodUnary<
  GenMessage<Message & { pageSize: number; pageToken: string }>,
  GenMessage<Message & { nextPageToken: string }>
>;

export interface ListMapping<V1 extends DescMethodUnary, V2 extends PagedMethod> {
  request(filter: RequestOf<V1>): RequestInitOf<V2>;
  /** Returns the v1 items of a v2 page. */
  response(page: ResponseOf<V2>, ctx: ReadContext): MaybePromise<readonly Message[]>;
  /** For the violations that v2 reports. */
  readonly v1FieldNames?: V1FieldNames;
}

/**
 * Implements a v1 List, which returns all items, by a v2 List, which returns pages. Each v2 page becomes a part of the
 * streamed v1 response. The next page is read when the client has room for it. The list is empty if the filter
 * names a resource that does not exist or is outside of the caller's reach.
 */
export function adaptList<V1 extends DescMethodUnary, V2 extends PagedMethod>(
  operations: Operations,
  v1: V1,
  v2: V2,
  mapping: ListMapping<V1, V2>,
): Operations {
  const readPage = readOf(operations, v2);
  const list = soleListField(v1.output);
  if (!list) throw new Error(`compat: the response of ${methodId(v1)} is not a list`);
  const renameViolations = createViolationRenamer(mapping.v1FieldNames);
  return streamOperation(v1, async function* (ctx, filter) {
    const request = await renameViolations(() => create<V2['input']>(v2.input, mapping.request(filter)));
    request.pageSize = PAGE_SIZE;
    for (;;) {
      const page = await renameViolations(() => readPage(ctx, request));
      const items = await mapping.response(page, ctx);
      const part = create<V1['output']>(v1.output, { [list.localName]: items } as object as MessageInitShape<
        V1['output']
      >);
      if (page.nextPageToken === '') return part;
      yield part;
      request.pageToken = page.nextPageToken;
      // SQLite reads are synchronous: without this, a long list would block the event loop.
      await setImmediate();
    }
  });
}

/** The v2 filter for a v1 filter, which may also name a single resource or its parent. */
export function uidpFilterOf(uidp: UIDPFilter | undefined, id = '', parent = ''): UIDPFilter {
  const filter = uidp ? clone(UIDPFilterSchema, uidp) : create(UIDPFilterSchema);
  const { ids, childrenOf } = filter;
  if (id !== '') filter.ids = [id];
  if (parent !== '') filter.childrenOf = parent;
  // Where two conditions exclude each other, nothing may be found: no resource is an ancestor of itself.
  if (id !== '' && ids.length > 0 && !ids.includes(id)) filter.ancestorsOf = id;
  if (parent !== '' && childrenOf !== '' && childrenOf !== parent) filter.ancestorsOf = filter.descendantsOf = parent;
  return filter;
}
