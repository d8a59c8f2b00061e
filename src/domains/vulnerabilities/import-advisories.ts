import { timeOrderedUid } from '../../base/time-ordered-uid.ts';
import {
  type Advisory,
  type AdvisorySchema,
  ReviewState,
} from '../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import {
  AdvisoryImportsService,
  type ImportAdvisoriesRequest,
} from '../../contract/gen/wharfinger/imports/v1/advisories_pb.js';
import type { Operations } from '../../resource/operation.ts';
import { type Importer, importRecords } from '../imports/import-records.ts';
import { advisories, advisoryKey } from './advisories.ts';
import { advisoryIdFrom } from './advisory-id.ts';
import { advisoryProblems } from './advisory-rules.ts';
import { replaceEvents } from './replace-events.ts';
import { isReviewed, mayReview } from './reviews.ts';

/** Each makes one advisory of a group what a record says. */
export const advisoryImporter: Importer<typeof AdvisorySchema> = {
  resource: advisories,
  field: 'advisories',
  idField: 'advisory_id',
  idOf: ({ advisoryId }) => advisoryId,
  problemsOf: advisoryProblems,
  wanted(record, group, now) {
    const advisoryId = record.advisoryId || derivedId(record, group);
    return {
      key: advisoryKey(group, advisoryId),
      newUid: () => timeOrderedUid(group, now),
      merge: (uid, known) => ({
        ...(known ? amended(known, record) : record),
        advisoryId,
        events: replaceEvents(uid, known?.events ?? [], record.events, now),
      }),
    };
  },
};

export const advisoryImportOperations: Operations = {
  [`${AdvisoryImportsService.typeName}/${AdvisoryImportsService.method.importAdvisories.name}`]: {
    mode: 'write',
    run(ctx, request) {
      const { parent, advisories } = request as ImportAdvisoriesRequest;
      const records = mayReview(ctx.caller, parent) ? advisories : advisories.map(unreviewed);
      return importRecords(ctx, advisoryImporter, parent, records);
    },
  },
};

/** Somebody who may not approve events brings in events that wait for it. */
const unreviewed = (record: Advisory): Advisory => ({
  ...record,
  events: record.events.map((event) =>
    isReviewed(event) ? { ...event, reviewer: '', reviewState: ReviewState.PENDING } : event,
  ),
});

/** What makes a record without an id the same record when it comes again. */
const derivedId = (record: Advisory, group: string): string =>
  advisoryIdFrom(
    group,
    ...[record.artifactName, record.artifactType, record.artifactArchitecture],
    ...[record.componentName, record.componentType, record.componentLocation],
    ...(record.legacyAdvisoryId ? [record.legacyAdvisoryId] : record.aliases.toSorted()),
  );

/** A known advisory with what the record says. What is empty there stays: not every format can say everything. */
function amended(known: Advisory, given: Advisory): Advisory {
  const advisory: Advisory = {
    ...known,
    author: given.author || known.author,
    artifactName: given.artifactName || known.artifactName,
    artifactType: given.artifactType || known.artifactType,
    artifactArchitecture: given.artifactArchitecture || known.artifactArchitecture,
    componentName: given.componentName || known.componentName,
    componentLocation: given.componentLocation || known.componentLocation,
    componentType: given.componentType || known.componentType,
    aliases: given.aliases,
    severities: given.severities.length > 0 ? given.severities : known.severities,
  };
  if (given.legacyAdvisoryId !== undefined) advisory.legacyAdvisoryId = given.legacyAdvisoryId;
  if (given.deleteTime !== undefined) advisory.deleteTime = given.deleteTime;
  return advisory;
}
