import type { DescMethodUnary } from '@bufbuild/protobuf';
import { type Operations, type WriteContext, writeOperation } from '../resource/operation.ts';
import { createViolationRenamer, type V1FieldNames } from './rename-violations.ts';
import type { RequestOf, ResponseOf } from './typed-operation.ts';

/** Implements a v1 write that v2 does not have. `run` reports violations with the v2 names of the fields. */
export function v1WriteOperation<M extends DescMethodUnary>(
  method: M,
  v1FieldNames: V1FieldNames,
  run: (ctx: WriteContext, request: RequestOf<M>) => Promise<ResponseOf<M>>,
): Operations {
  const renameViolations = createViolationRenamer(v1FieldNames);
  return writeOperation(method, { run: (ctx, request) => renameViolations(() => run(ctx, request)) });
}
