import { create, type DescMethodUnary } from '@bufbuild/protobuf';
import { ApiError, Code } from '../base/errors.ts';
import { type Operations, readOf, readOperation } from '../resource/operation.ts';

/** The v2 read `method`, but with an empty response instead of NOT_FOUND, as in v1 (specification, section 7). */
export function emptyIfNotFound<M extends DescMethodUnary>(operations: Operations, method: M): Operations {
  const read = readOf(operations, method);
  return readOperation(method, async (ctx, request) => {
    try {
      return await read(ctx, request);
    } catch (error) {
      if (error instanceof ApiError && error.code === Code.NOT_FOUND) return create<M['output']>(method.output);
      throw error;
    }
  });
}
