import type { ReadBlob } from '../../domains/registry/manifests/read-blob.ts';
import type { Operations } from '../../resource/operation.ts';
import { apkoOperations } from './apko.ts';
import { chartOperations } from './charts.ts';
import { deploymentOperations } from './deployments.ts';
import { entitlementOperations } from './entitlements.ts';
import { imageOperations } from './images.ts';
import { policyOperations } from './policies.ts';
import { repoOperations } from './repos.ts';
import { sbomOperations } from './sboms.ts';
import { settingsOperations } from './settings.ts';
import { tagOperations } from './tags.ts';
import { unsupportedOperations } from './unsupported.ts';

export interface RegistryOptions {
  /** v1 has methods that return the content of images, such as their SBOMs. */
  readonly readBlob: ReadBlob;
}

/** The operations of the v1 services for the registry. */
export const registryOperations = (operations: Operations, { readBlob }: RegistryOptions): Operations => ({
  ...repoOperations(operations),
  ...tagOperations(operations),
  ...imageOperations(operations, readBlob),
  ...sbomOperations(readBlob),
  ...deploymentOperations,
  ...entitlementOperations(operations),
  ...chartOperations(operations, readBlob),
  ...policyOperations,
  ...apkoOperations,
  ...settingsOperations,
  ...unsupportedOperations,
});
