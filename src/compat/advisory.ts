import { mapInSlices } from '../base/slices.ts';
import {
  DocumentSchema,
  SecurityAdvisoryService,
  VulnerabilityMetadataSchema,
} from '../contract/gen/chainguard/platform/advisory/v2/advisory_pb.js';
import * as v1 from '../contract/gen/platform/advisory/v1/advisory.platform_pb.js';
import type { Operations } from '../resource/operation.ts';
import { adapt } from './adapt.ts';
import { adaptList } from './adapt-list.ts';
import { createMessageMapper } from './message-mapper.ts';

const { listDocuments, listVulnerabilityMetadata } = SecurityAdvisoryService.method;
const { method } = v1.SecurityAdvisory;

const onlyV2 = ['uid', 'create_time', 'update_time'];
const documentMapper = createMessageMapper(v1.DocumentSchema, DocumentSchema, { onlyV2 });
const metadataMapper = createMessageMapper(v1.VulnerabilityMetadataSchema, VulnerabilityMetadataSchema, {
  renames: { severity: 'severities' },
  onlyV2: [...onlyV2, 'aliases'],
});

export const advisoryOperations = (operations: Operations): Operations => ({
  ...adaptList(operations, method.listDocuments, listDocuments, {
    request: ({ id, cves }) => ({ id, cves }),
    response: ({ documents }) => mapInSlices(documents, documentMapper.toV1),
  }),
  ...adapt(operations, method.listVulnerabilityMetadata, listVulnerabilityMetadata, {
    request: ({ id, ids, pageSize, pageToken, orderBy, skip }) => ({ id, ids, pageSize, pageToken, orderBy, skip }),
    response: ({ vulnerabilityMetadata, nextPageToken, totalCount, skipped }) => ({
      items: vulnerabilityMetadata.map(metadataMapper.toV1),
      ...{ nextPageToken, skipped },
      ...(totalCount !== undefined && { totalCount }),
    }),
  }),
});
