import type { Uid } from '../../base/uid.ts';
import { SecurityAdvisoryService } from '../../contract/gen/chainguard/platform/advisory/v2/advisory_pb.js';
import type { Engine } from '../../resource/engine.ts';
import { type Operations, readOf, readOperation } from '../../resource/operation.ts';
import { standardOperations } from '../../resource/standard-methods.ts';
import { documentOperations } from './list-documents.ts';
import { createReadableGroups, withReach } from './readable-groups.ts';
import { vulnerabilityMetadata } from './vulnerability-metadata.ts';

// This folder serves the API domain `advisory`, which has documents and vulnerability metadata. A document is a view of
// the advisories of a package. The advisories themselves are in the folder `advisories`, which serves the API domain
// `vulnerabilities`.

const { listVulnerabilityMetadata } = SecurityAdvisoryService.method;

export interface SecurityAdvisoryOptions {
  /** The uids of groups whose advisories are public. */
  readonly publicAdvisoryGroups: readonly Uid[];
}

export function securityAdvisoryOperations(engine: Engine, options: SecurityAdvisoryOptions): Operations {
  const readableGroups = createReadableGroups(options.publicAdvisoryGroups);
  const standard = standardOperations(engine, vulnerabilityMetadata, SecurityAdvisoryService);
  const listMetadata = readOf(standard, listVulnerabilityMetadata);
  return {
    ...documentOperations(engine.pageTokens, readableGroups),
    ...readOperation(listVulnerabilityMetadata, (ctx, request) =>
      listMetadata(withReach(ctx, readableGroups(ctx.caller)), request),
    ),
  };
}
