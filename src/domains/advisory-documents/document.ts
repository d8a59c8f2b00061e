import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  type Detection,
  type DetectionSchema,
  type DocumentAdvisory,
  DocumentAdvisorySchema,
  type DocumentEvent,
  DocumentEventSchema,
} from '../../contract/gen/chainguard/platform/advisory/v2/advisory_pb.js';
import {
  type Advisory,
  type AdvisoryEvent,
  type AdvisoryEvent_Detection,
  ReviewState,
} from '../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';

/** Converts an advisory to its form in the document of a package. */
export const toDocumentAdvisory = ({ advisoryId, aliases, events }: Advisory): DocumentAdvisory =>
  create(DocumentAdvisorySchema, { id: advisoryId, aliases, events: events.flatMap(toDocumentEvents) });

/** Returns no event for one that was rejected, or whose type documents do not have. */
function toDocumentEvents(event: AdvisoryEvent): DocumentEvent[] {
  const data = event.reviewState === ReviewState.REJECTED ? undefined : dataOf(event);
  if (!data) return [];
  return [create(DocumentEventSchema, { data, ...(event.createTime && { timestamp: event.createTime }) })];
}

type EventData = Exclude<MessageInitShape<typeof DocumentEventSchema>, DocumentEvent>['data'];

function dataOf({ type }: AdvisoryEvent): EventData {
  switch (type.case) {
    case undefined:
    case 'patched':
      return undefined;
    case 'detection':
      return { case: type.case, value: { type: detectionOf(type.value) } };
    case 'fixed': {
      const { fixedVersion, scannerVersion, grypeDbBuilt, grypeDbChecksum } = type.value;
      return { case: type.case, value: { fixedVersion, scannerVersion, grypeDbBuilt, grypeDbChecksum } };
    }
    case 'falsePositiveDetermination': {
      const reason: number = type.value.type;
      return { case: type.case, value: { type: reason, note: type.value.note } };
    }
    default:
      return { case: type.case, value: { note: type.value.note } };
  }
}

type DetectionInit = NonNullable<Exclude<MessageInitShape<typeof DetectionSchema>, Detection>['type']>;

function detectionOf({ type }: AdvisoryEvent_Detection): DetectionInit {
  switch (type.case) {
    case undefined:
      return type;
    case 'nvdapi': {
      const { cpeSearched, cpeFound } = type.value;
      return { case: type.case, value: { cpeSearched, cpeFound } };
    }
    case 'manual':
      return { case: type.case, value: {} };
    case 'scanv1': {
      const { $typeName: _, subpackage, component, ...rest } = type.value;
      return { case: type.case, value: { ...rest, subpackageName: subpackage, componentName: component } };
    }
  }
}
