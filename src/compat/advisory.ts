import {
  DocumentSchema,
  SecurityAdvisoryService,
  VulnerabilityMetadataSchema,
} from '../contract/gen/chainguard/platform/advisory/v2/advisory_pb.js';
import * as v1 from '../contract/gen/platform/advisory/v1/advisory.platform_pb.js';
import type { Operations } from '../resource/operation.ts';
import { adapt } from './adapt.ts';
import { listAll } from './list-all.ts';
import { vocabulary } from './message-mapper.ts';

const { listDocuments, listVulnerabilityMetadata } = SecurityAdvisoryService.method;
const { method } = v1.SecurityAdvisory;

const document = vocabulary(v1.DocumentSchema, DocumentSchema);
const metadata = vocabulary(v1.VulnerabilityMetadataSchema, VulnerabilityMetadataSchema, {
  names: { severity: 'severities' },
});

export const advisoryOperations = (operations: Operations): Operations => ({
  ...listAll(operations, method.listDocuments, listDocuments, {
    request: ({ id, cves }) => ({ id, cves }),
    response: ({ documents }) => documents.map(document.toV1),
  }),
  ...adapt(operations, method.listVulnerabilityMetadata, listVulnerabilityMetadata, {
    request: ({ id, ids, pageSize, pageToken, orderBy, skip }) => ({ id, ids, pageSize, pageToken, orderBy, skip }),
    response: ({ vulnerabilityMetadata, nextPageToken, totalCount, skipped }) => ({
      items: vulnerabilityMetadata.map(metadata.toV1),
      ...{ nextPageToken, skipped },
      ...(totalCount !== undefined && { totalCount }),
    }),
  }),
});
