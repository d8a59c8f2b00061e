import type { ReadContent } from '../../domains/registry/manifests/blob-content.ts';
import type { PageTokens } from '../../resource/list/page-token.ts';
import type { Operations } from '../../resource/operation.ts';
import { deploymentOperations } from './deployments.ts';
import { imageOperations } from './images.ts';
import { repoOperations } from './repos.ts';
import { sbomOperations } from './sboms.ts';
import { tagOperations } from './tags.ts';
import { elsewhereOperations } from './unsupported.ts';

export interface RegistryOptions {
  readonly tokens: PageTokens;
  /** v1 shows what is in images, and not only what is known of them. */
  readonly readContent: ReadContent;
}

/** v1 has all of the registry in one service. */
export const registryOperations = (operations: Operations, { tokens, readContent }: RegistryOptions): Operations => ({
  ...repoOperations(operations),
  ...tagOperations(operations, tokens),
  ...imageOperations(operations, readContent),
  ...sbomOperations(readContent),
  ...deploymentOperations,
  ...elsewhereOperations,
});
