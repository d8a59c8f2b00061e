import { v2beta1Id } from '../contract/v2beta1.ts';
import type { Operations } from '../resource/operation.ts';

/** v2beta1 is v2 under its former name: the very same operations. */
export const betaOperations = (operations: Operations): Operations =>
  Object.fromEntries(
    Object.entries(operations).flatMap(([id, operation]) => {
      const former = v2beta1Id(id);
      return former === undefined ? [] : [[former, operation]];
    }),
  );
