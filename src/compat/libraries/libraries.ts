import type { PageTokens } from '../../resource/list/page-token.ts';
import type { Operations } from '../../resource/operation.ts';
import { artifactOperations } from './artifacts.ts';
import { entitlementOperations } from './entitlements.ts';
import { malwareOperations } from './malware.ts';
import { marketplaceOperations } from './marketplace.ts';
import { npmPackageOperations } from './npm-packages.ts';
import { policyOperations } from './policies.ts';
import { resolutionCacheOperations } from './resolution-cache.ts';

export const libraryOperations = (operations: Operations, pageTokens: PageTokens): Operations => ({
  ...artifactOperations(operations),
  ...entitlementOperations(operations),
  ...malwareOperations(operations),
  ...marketplaceOperations,
  ...npmPackageOperations(pageTokens),
  ...policyOperations(operations),
  ...resolutionCacheOperations,
});
