import type { DescMethodUnary, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import type { MaybePromise } from '../base/maybe-promise.ts';
import { methodId } from '../contract/method.ts';
import type { Operations, ReadContext, WriteHandlers } from '../resource/operation.ts';

export type RequestOf<M extends DescMethodUnary> = MessageShape<M['input']>;
export type ResponseOf<M extends DescMethodUnary> = MessageShape<M['output']>;
export type RequestInitOf<M extends DescMethodUnary> = MessageInitShape<M['input']>;
export type ResponseInitOf<M extends DescMethodUnary> = MessageInitShape<M['output']>;

type WriteHandlersOf<M extends DescMethodUnary> = WriteHandlers<RequestOf<M>, ResponseOf<M>, unknown>;

type TypedOperation<M extends DescMethodUnary> =
  | { readonly mode: 'read'; run(ctx: ReadContext, request: RequestOf<M>): MaybePromise<ResponseOf<M>> }
  | ({ readonly mode: 'write' } & WriteHandlersOf<M>);

/** The operation of `method`, with the message types of the method. */
export function requireOperation<M extends DescMethodUnary>(operations: Operations, method: M): TypedOperation<M> {
  const operation = operations[methodId(method)];
  // v2 has paged lists instead of streams.
  if (!operation || operation.mode === 'stream') {
    throw new Error(`compat: there is no operation for ${methodId(method)}`);
  }
  return operation as TypedOperation<M>;
}

/** The handlers of `method`, which must be a write: for an operation that wraps it. */
export function requireWrite<M extends DescMethodUnary>(operations: Operations, method: M): WriteHandlersOf<M> {
  const operation = requireOperation(operations, method);
  if (operation.mode !== 'write') throw new Error(`compat: ${methodId(method)} is not a write operation`);
  return operation;
}
