import type { PageTokens } from '../resource/list/page-token.ts';
import type { Operations } from '../resource/operation.ts';
import { advisoryOperations } from './advisory.ts';
import { authOperations } from './auth.ts';
import { eventOperations } from './events.ts';
import { iamOperations } from './iam/iam.ts';
import { libraryOperations } from './libraries/libraries.ts';
import { pingOperations } from './ping.ts';
import { type RegistryOptions, registryOperations } from './registry/registry.ts';
import { reportOperations } from './reports.ts';
import { v2beta1Operations } from './v2beta1.ts';
import { vulnerabilityOperations } from './vulnerabilities.ts';

export interface CompatOptions extends RegistryOptions {
  readonly pageTokens: PageTokens;
}

/**
 * The operations of v1 and v2beta1, for clients that do not use v2 yet. They are adapters over the v2 operations. The
 * result also has the v2 operations that emit the events of v1.
 */
export function createCompatOperations(operations: Operations, options: CompatOptions): Operations {
  const v1Operations = createV1Operations(operations, options);
  return { ...v1Operations, ...v2beta1Operations({ ...operations, ...v1Operations }) };
}

const createV1Operations = (operations: Operations, options: CompatOptions): Operations => ({
  ...authOperations,
  ...advisoryOperations(operations),
  ...vulnerabilityOperations(operations),
  ...eventOperations(operations),
  ...iamOperations(operations),
  ...libraryOperations(operations, options.pageTokens),
  ...pingOperations(operations),
  ...registryOperations(operations, options),
  ...reportOperations(operations),
});
