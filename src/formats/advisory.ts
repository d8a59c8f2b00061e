import { fromJson } from '@bufbuild/protobuf';
import { AdvisorySchema } from '../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { damaged } from './reading.ts';

/** An advisory in the JSON of the API, which every format is turned into and made from. */
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

/** What happened: exactly one of these. */
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

/** What was published has been reviewed. */
export const PUBLISHED = 'REVIEW_STATE_APPROVED';

/** Fields that the server writes: they say where and when an advisory is stored, not what it says. */
const SERVERS = new Set(['uid', 'createTime', 'updateTime']);

const withoutServers = <T extends object>(message: T): T =>
  Object.fromEntries(Object.entries(message).filter(([name]) => !SERVERS.has(name))) as T;

/** An advisory as an import would give it: two that say the same are equal. */
export function essenceOf(advisory: AdvisoryJson): AdvisoryJson {
  const { events = [], ...rest } = withoutServers(advisory);
  if (events.length === 0) return rest;
  // The time of an event is part of what it says; only its uid and last change are the server's.
  return { ...rest, events: events.map((event) => ({ ...withoutServers(event), ...timeOf(event) })) };
}

const timeOf = ({ createTime }: EventJson): { createTime?: string } => (createTime === undefined ? {} : { createTime });

/** Throws unless the contract would take it. For what came from others as it is. */
export function checkAdvisory(advisory: AdvisoryJson, field: string): AdvisoryJson {
  try {
    fromJson(AdvisorySchema, advisory);
    return advisory;
  } catch (error) {
    throw damaged(field, `is not what this server writes (${(error as Error).message})`);
  }
}
