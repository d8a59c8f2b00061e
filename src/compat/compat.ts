import type { Operations } from '../resource/context.ts';
import { betaOperations } from './beta.ts';
import { iamOperations } from './iam/iam.ts';
import { libraryOperations } from './libraries.ts';
import { pingOperations } from './ping.ts';
import { reportOperations } from './reports.ts';

/** What earlier clients call the operations of v2. */
export const createCompatOperations = (operations: Operations): Operations => ({
  ...betaOperations(operations),
  ...iamOperations(operations),
  ...libraryOperations(operations),
  ...pingOperations(operations),
  ...reportOperations(operations),
});
