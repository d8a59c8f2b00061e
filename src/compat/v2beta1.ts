import { v2beta1Id } from '../contract/v2beta1.ts';
import type { Operations } from '../resource/operation.ts';

/** v2beta1 is the former name of v2, so its methods run the v2 operations unchanged. */
export const v2beta1Operations = (operations: Operations): Operations =>
  Object.fromEntries(
    Object.entries(operations).flatMap(([id, operation]) => {
      const formerId = v2beta1Id(id);
      return formerId === undefined ? [] : [[formerId, operation]];
    }),
  );
