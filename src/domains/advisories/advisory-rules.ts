import type { Timestamp } from '@bufbuild/protobuf/wkt';
import type { FieldViolation } from '../../base/errors.ts';
import {
  type Advisory,
  type AdvisoryEvent,
  ReviewStateSchema,
  Severity_TypeSchema,
} from '../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import * as rules from '../../resource/rules.ts';
import { isAdvisoryId } from './advisory-id.ts';

/** All texts are values of filters, and so parts of index keys, whose length is limited. */
const text = rules.line(512);
const id = (value: string): string | undefined => (/^\S*$/.test(value) ? text(value) : 'must have no spaces');
const time = (value: Timestamp | undefined): string | undefined =>
  value && (value.seconds < FIRST_SECOND || value.seconds > LAST_SECOND) ? 'must be in the years 1 to 9999' : undefined;
const MAX_ALIASES = 100;
const MAX_EVENTS = 200;
const MAX_SEVERITIES = 20;
/** The range of google.protobuf.Timestamp: the years 1 to 9999. */
const FIRST_SECOND = -62_135_596_800n;
const LAST_SECOND = 253_402_300_799n;

/** The problems of an advisory. Of the fields that the contract requires, many sources know only the artifact name. */
export function advisoryProblems(advisory: Advisory): FieldViolation[] {
  const { advisoryId, legacyAdvisoryId, aliases, events, severities } = advisory;
  const problems: FieldViolation[] = [];
  const refuse = (field: string, description: string | undefined): void => {
    if (description !== undefined) problems.push({ field, description });
  };
  if (advisoryId !== '' && !isAdvisoryId(advisoryId)) refuse('advisory_id', 'must be of the form CGA-xxxx-xxxx-xxxx');
  if (aliases.length > MAX_ALIASES) refuse('aliases', `must have at most ${MAX_ALIASES} items`);
  if (events.length > MAX_EVENTS) refuse('events', `must have at most ${MAX_EVENTS} items`);

  if (severities.length > MAX_SEVERITIES) refuse('severities', `must have at most ${MAX_SEVERITIES} items`);
  if (advisory.artifactName === '') refuse('artifact_name', 'is required: the name of the affected artifact');

  refuse('author', text(advisory.author));
  refuse('artifact_name', text(advisory.artifactName));
  refuse('artifact_type', text(advisory.artifactType));
  refuse('artifact_architecture', text(advisory.artifactArchitecture));
  refuse('component_name', text(advisory.componentName));
  refuse('component_location', text(advisory.componentLocation));
  refuse('component_type', text(advisory.componentType));
  refuse('legacy_advisory_id', id(legacyAdvisoryId ?? ''));
  for (const [at, alias] of aliases.entries()) {
    refuse(`aliases[${at}]`, alias === '' ? 'must not be empty' : id(alias));
  }
  refuse('delete_time', time(advisory.deleteTime));
  for (const [at, { type, score }] of severities.entries()) {
    refuse(`severities[${at}].type`, Severity_TypeSchema.value[type] ? undefined : 'must be a known type');
    refuse(`severities[${at}].score`, text(score));
  }
  for (const [at, event] of events.entries()) problems.push(...eventProblems(event, `events[${at}]`));
  return problems;
}

/** The problems of an event. `path` is its path in the request. */
export function eventProblems(event: AdvisoryEvent, path: string): FieldViolation[] {
  const { author, reviewer, reviewState, createTime, issue = '', type } = event;
  const problems: [field: string, description: string | undefined][] = [
    [path, type.case === undefined ? 'must have a type' : undefined],
    [`${path}.create_time`, time(createTime)],
    [`${path}.review_state`, ReviewStateSchema.value[reviewState] ? undefined : 'must be a known state'],
    [`${path}.issue`, text(issue)],
    [`${path}.author`, text(author)],
    [`${path}.reviewer`, text(reviewer)],
  ];
  return problems.flatMap(([field, description]) => (description === undefined ? [] : [{ field, description }]));
}
