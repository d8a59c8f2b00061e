import type { Operations } from '../resource/operation.ts';
import { advisoryOperations } from './advisory.ts';
import { eventOperations } from './events.ts';
import { iamOperations } from './iam/iam.ts';
import { libraryOperations } from './libraries.ts';
import { pingOperations } from './ping.ts';
import { type RegistryOptions, registryOperations } from './registry/registry.ts';
import { reportOperations } from './reports.ts';
import { betaOperations } from './v2beta1.ts';
import { vulnerabilityOperations } from './vulnerabilities.ts';

/** What earlier clients call the operations of v2. */
export const createCompatOperations = (operations: Operations, options: RegistryOptions): Operations => ({
  ...betaOperations(operations),
  ...advisoryOperations(operations),
  ...vulnerabilityOperations(operations),
  ...eventOperations(operations),
  ...iamOperations(operations),
  ...libraryOperations(operations),
  ...pingOperations(operations),
  ...registryOperations(operations, options),
  ...reportOperations(operations),
});
