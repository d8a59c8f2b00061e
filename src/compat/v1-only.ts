import { create, type Message, type MessageShape } from '@bufbuild/protobuf';
import { ApiError, Code } from '../base/errors.ts';
import type { Operation, Operations, WriteContext } from '../resource/operation.ts';
import { idOf, inWordsOf, type Unary } from './adapt.ts';

/** A write that v1 has and v2 has not, with complaints in the words of v1. */
export function writeOnly<M extends Unary>(
  method: M,
  fields: Readonly<Record<string, string>>,
  run: (ctx: WriteContext, request: MessageShape<M['input']>) => Promise<Message>,
): Operations {
  const named = inWordsOf(fields);
  const operation: Operation = {
    mode: 'write',
    run: (ctx, request) => named(() => run(ctx, request as MessageShape<M['input']>)),
  };
  return { [idOf(method)]: operation };
}

/** The read `method` of v2 as v1 knows it: where v2 says NOT_FOUND, there is just nothing (specification, section 7). */
export function orNothing(operations: Operations, method: Unary): Operations {
  const operation = operations[idOf(method)];
  if (operation?.mode !== 'read') throw new Error(`compat: ${idOf(method)} is no read`);
  const run: typeof operation.run = async (ctx, request) => {
    try {
      return await operation.run(ctx, request);
    } catch (error) {
      if (error instanceof ApiError && error.code === Code.NOT_FOUND) return create(method.output);
      throw error;
    }
  };
  return { [idOf(method)]: { mode: 'read', run } };
}
