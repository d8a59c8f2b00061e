import type { DescMethodUnary, MessageShape } from '@bufbuild/protobuf';
import { type Method, methodId } from '../contract/method.ts';
import type { Operations } from '../resource/operation.ts';
import { runWriteOperation, type TransactionContext } from './run-write.ts';

/**
 * Runs the write operation of another method in the transaction of a call, with its validation and its event. The caller
 * must have been authorized for it.
 */
export type RunNested = <M extends DescMethodUnary>(
  ctx: TransactionContext,
  method: M,
  request: MessageShape<M['input']>,
) => Promise<MessageShape<M['output']>>;

export function createNestedRunner(methods: readonly Method[], operations: Operations): RunNested {
  const table = new Map(methods.map((method) => [method.id, method]));
  return async (ctx, desc, request) => {
    const id = methodId(desc);
    const method = table.get(id);
    const operation = operations[id];
    if (!method || operation?.mode !== 'write') throw new Error(`${id} has no write operation`);
    return (await runWriteOperation({ ...ctx, method }, operation, request)) as never;
  };
}
