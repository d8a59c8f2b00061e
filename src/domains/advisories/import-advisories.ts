import { timeOrderedUid } from '../../base/time-ordered-uid.ts';
import { parseUid } from '../../base/uid.ts';
import {
  type Advisory,
  type AdvisorySchema,
  ReviewState,
} from '../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { AdvisoryImportsService } from '../../contract/gen/wharfinger/imports/v1/advisories_pb.js';
import { writeOperation } from '../../resource/operation.ts';
import { type Importer, importRecords } from '../imports/import-records.ts';
import { advisories, advisoryKey } from './advisories.ts';
import { deriveAdvisoryId } from './advisory-id.ts';
import { advisoryProblems } from './advisory-rules.ts';
import { replaceEvents } from './replace-events.ts';
import { canReview, isReviewed } from './reviews.ts';

/** Creates or updates one advisory of a group for each record. */
export const advisoryImporter: Importer<typeof AdvisorySchema> = {
  resource: advisories,
  field: 'advisories',
  idField: 'advisory_id',
  idOf: ({ advisoryId }) => advisoryId,
  problemsOf: advisoryProblems,
  toUpsert(record, group, now) {
    const advisoryId = record.advisoryId || deriveId(record, group);
    return {
      key: advisoryKey(group, advisoryId),
      newUid: (parent) => timeOrderedUid(parent, now),
      merge: (uid, existing) => ({
        ...(existing ? mergeRecord(existing, record) : record),
        advisoryId,
        events: replaceEvents(uid, existing?.events ?? [], record.events, now),
      }),
    };
  },
};

export const advisoryImportOperations = writeOperation(AdvisoryImportsService.method.importAdvisories, {
  run(ctx, { parent, advisories }) {
    const records = canReview(ctx.caller, parseUid('parent', parent)) ? advisories : advisories.map(withoutReviews);
    return importRecords(ctx, advisoryImporter, parent, records);
  },
});

/** Callers that may not review events import reviewed events as pending. */
const withoutReviews = (record: Advisory): Advisory => ({
  ...record,
  events: record.events.map((event) =>
    isReviewed(event) ? { ...event, reviewer: '', reviewState: ReviewState.PENDING } : event,
  ),
});

/** The id of a record without one. It is derived from the record, so that a second import finds the same advisory. */
const deriveId = (record: Advisory, group: string): string =>
  deriveAdvisoryId(
    group,
    ...[record.artifactName, record.artifactType, record.artifactArchitecture],
    ...[record.componentName, record.componentType, record.componentLocation],
    ...(record.legacyAdvisoryId ? [record.legacyAdvisoryId] : record.aliases.toSorted()),
  );

/** Merges a record into an advisory. Empty fields keep their values, because not every format has all of them. */
function mergeRecord(existing: Advisory, record: Advisory): Advisory {
  const advisory: Advisory = {
    ...existing,
    author: record.author || existing.author,
    artifactName: record.artifactName || existing.artifactName,
    artifactType: record.artifactType || existing.artifactType,
    artifactArchitecture: record.artifactArchitecture || existing.artifactArchitecture,
    componentName: record.componentName || existing.componentName,
    componentLocation: record.componentLocation || existing.componentLocation,
    componentType: record.componentType || existing.componentType,
    aliases: record.aliases,
    severities: record.severities.length > 0 ? record.severities : existing.severities,
  };
  if (record.legacyAdvisoryId !== undefined) advisory.legacyAdvisoryId = record.legacyAdvisoryId;
  if (record.deleteTime !== undefined) advisory.deleteTime = record.deleteTime;
  return advisory;
}
