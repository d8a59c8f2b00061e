import { orderedUid } from '../../base/ordered-uid.ts';
import type { VulnerabilityMetadataSchema } from '../../contract/gen/chainguard/platform/advisory/v2/advisory_pb.js';
import {
  type ImportVulnerabilitiesRequest,
  VulnerabilityImportsService,
} from '../../contract/gen/wharfinger/imports/v1/vulnerabilities_pb.js';
import type { Operations } from '../../resource/context.ts';
import { type Importer, importRecords } from '../wharfinger/import-records.ts';
import { vulnerabilities, vulnerabilityKey } from './vulnerabilities.ts';
import { vulnerabilityProblems } from './vulnerability-rules.ts';

/** A record replaces what was known under its id. */
export const vulnerabilityImporter: Importer<typeof VulnerabilityMetadataSchema> = {
  resource: vulnerabilities,
  field: 'vulnerabilities',
  idField: 'id',
  idOf: ({ id }) => id,
  problemsOf: vulnerabilityProblems,
  wanted: (record, group, now) => ({
    key: vulnerabilityKey(group, record.id),
    newUid: () => orderedUid(group, now),
    become: () => record,
  }),
};

export const vulnerabilityImportOperations: Operations = {
  [`${VulnerabilityImportsService.typeName}/${VulnerabilityImportsService.method.importVulnerabilities.name}`]: {
    mode: 'write',
    run(ctx, request) {
      const { parent, vulnerabilities } = request as ImportVulnerabilitiesRequest;
      return importRecords(ctx, vulnerabilityImporter, parent, vulnerabilities);
    },
  },
};
