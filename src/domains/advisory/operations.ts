import { SecurityAdvisoryService } from '../../contract/gen/chainguard/platform/advisory/v2/advisory_pb.js';
import type { Engine } from '../../resource/engine.ts';
import type { Operations } from '../../resource/operation.ts';
import { standardOperations } from '../../resource/standard-methods.ts';
import { listDocuments } from './documents/list-documents.ts';
import { reachingOnly, readableGroups } from './readable-groups.ts';
import { vulnerabilities } from './vulnerability-metadata.ts';

export interface SecurityAdvisoryOptions {
  /** The uids of groups whose advisories everybody may read. */
  readonly publicAdvisoryGroups: readonly string[];
}

const { method, typeName } = SecurityAdvisoryService;
const DOCUMENTS = `${typeName}/${method.listDocuments.name}`;
const METADATA = `${typeName}/${method.listVulnerabilityMetadata.name}`;

export function securityAdvisoryOperations(engine: Engine, options: SecurityAdvisoryOptions): Operations {
  const readable = readableGroups(options.publicAdvisoryGroups);
  return {
    [DOCUMENTS]: listDocuments(engine.pageTokens, readable),
    [METADATA]: reachingOnly(readable, standardOperations(engine, vulnerabilities, SecurityAdvisoryService)[METADATA]),
  };
}
