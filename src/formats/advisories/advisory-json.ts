import { fromJson } from '@bufbuild/protobuf';
import { AdvisorySchema } from '../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { malformed } from '../strict-json.ts';

/** An advisory in the JSON of the API. All formats are decoded to it and encoded from it. */
export type AdvisoryJson = {
  advisoryId: string;
  createTime?: string;
  updateTime?: string;
  deleteTime?: string;
  author?: string;
  artifactName: string;
  artifactType?: string;
  artifactArchitecture?: string;
  componentName?: string;
  componentLocation?: string;
  componentType?: string;
  aliases?: string[];
  events?: EventJson[];
  legacyAdvisoryId?: string;
  severities?: SeverityJson[];
};

export type SeverityJson = { type: string; score: string };

export type EventJson = EventType & {
  createTime?: string;
  findings?: string;
  author?: string;
  reviewer?: string;
  reviewState?: string;
  issue?: string;
};

/** The type of an event with its data: exactly one of these. */
export type EventType = {
  detection?: DetectionJson;
  fixed?: { fixedVersion?: string; note?: string };
  falsePositiveDetermination?: { type?: string; note?: string };
  analysisNotPlanned?: NoteJson;
  fixNotPlanned?: NoteJson;
  pendingUpstreamFix?: NoteJson;
  truePositiveDetermination?: NoteJson;
  patched?: { patchedVersions?: string[]; note?: string };
};

export type NoteJson = { note?: string };

export type DetectionJson = {
  scanv1?: Record<string, string>;
  nvdapi?: Record<string, string>;
  manual?: Record<string, never>;
};

/** The review state of imported events: published advisories have been reviewed. */
export const APPROVED = 'REVIEW_STATE_APPROVED';

/** Fields that the server sets. They are not part of the content of an advisory. */
const SERVER_FIELDS = new Set(['uid', 'createTime', 'updateTime']);

const omitServerFields = <T extends object>(message: T): T =>
  Object.fromEntries(Object.entries(message).filter(([name]) => !SERVER_FIELDS.has(name))) as T;

/** Returns the advisory as an import would send it, so that advisories with the same content are equal. */
export function stripServerFields(advisory: AdvisoryJson): AdvisoryJson {
  const { events = [], ...rest } = omitServerFields(advisory);
  if (events.length === 0) return rest;
  // The time of an event is content. Only its uid and the time of its last change are set by the server.
  return { ...rest, events: events.map((event) => ({ ...omitServerFields(event), ...createTimeOf(event) })) };
}

const createTimeOf = ({ createTime }: EventJson): { createTime?: string } =>
  createTime === undefined ? {} : { createTime };

/** Refuses an advisory that the contract does not allow. */
export function checkAdvisory(advisory: AdvisoryJson, field: string): AdvisoryJson {
  try {
    fromJson(AdvisorySchema, advisory);
    return advisory;
  } catch (error) {
    throw malformed(field, `must be an advisory as this server exports it (${(error as Error).message})`);
  }
}
