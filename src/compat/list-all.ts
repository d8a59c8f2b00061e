import { setImmediate } from 'node:timers/promises';
import { clone, create, type Message, type MessageInitShape } from '@bufbuild/protobuf';
import type { MaybePromise } from '../base/maybe-promise.ts';
import { type UIDPFilter, UIDPFilterSchema } from '../contract/gen/platform/common/v1/uidp.platform_pb.js';
import { soleListField } from '../contract/streamed-list.ts';
import type { Operation, Operations, ReadContext } from '../resource/operation.ts';
import { type Input, type InputOf, idOf, inWordsOf, type Output, operationOf, type Unary } from './adapt.ts';

const PAGE = 200;

/** What v2 List requests and answers have in common. */
interface PageRequest extends Message {
  pageSize: number;
  pageToken: string;
}
interface Page extends Message {
  readonly nextPageToken: string;
}

export interface ListWording<V1 extends Unary, V2 extends Unary> {
  request(filter: Input<V1>): InputOf<V2>;
  /** The items of v1. */
  response(page: Output<V2>, ctx: ReadContext): MaybePromise<readonly Message[]>;
  readonly fields?: Readonly<Record<string, string>>;
}

/**
 * A v1 List: everything at once, where v2 has pages. Each page of v2 becomes a part of the answer, and the next is read when
 * that is on its way. What is out of reach or not there is an empty list, as it is in v2.
 */
export function listAll<V1 extends Unary, V2 extends Unary>(
  operations: Operations,
  v1: V1,
  v2: V2,
  words: ListWording<V1, V2>,
): Operations {
  const operation = operationOf(operations, v2);
  const list = soleListField(v1.output);
  if (operation.mode !== 'read' || !list) throw new Error(`compat: ${idOf(v1)} is no list`);
  const named = inWordsOf(words.fields);
  const adapted: Operation = {
    mode: 'stream',
    async *run(ctx, filter) {
      const request = await named(() => create(v2.input, words.request(filter as Input<V1>)) as Message as PageRequest);
      request.pageSize = PAGE;
      for (;;) {
        const page = (await named(() => operation.run(ctx, request))) as Page;
        const items = await words.response(page as Message as Output<V2>, ctx);
        const part = create(v1.output, { [list.localName]: items } as object as MessageInitShape<V1['output']>);
        if (page.nextPageToken === '') return part;
        yield part;
        request.pageToken = page.nextPageToken;
        // SQLite answers at once: without this a long list would let nobody else in.
        await setImmediate();
      }
    },
  };
  return { [idOf(v1)]: adapted };
}

/** The hierarchy filter of v2 for a filter of v1, which may also name a single resource, or the one parent of many. */
export function within(uidp: UIDPFilter | undefined, id = '', parent = ''): UIDPFilter {
  const filter = uidp ? clone(UIDPFilterSchema, uidp) : create(UIDPFilterSchema);
  const { ids, childrenOf } = filter;
  if (id !== '') filter.ids = [id];
  if (parent !== '') filter.childrenOf = parent;
  // Nothing lies above itself, so nothing is found where one condition excludes another.
  if (id !== '' && ids.length > 0 && !ids.includes(id)) filter.ancestorsOf = id;
  if (parent !== '' && childrenOf !== '' && childrenOf !== parent) filter.ancestorsOf = filter.descendantsOf = parent;
  return filter;
}
