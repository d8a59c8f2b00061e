import type { FieldViolation } from '../../base/errors.ts';
import type { Advisory } from '../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import * as rules from '../../resource/rules.ts';
import { isAdvisoryId } from './advisory-id.ts';

/** Each can be filtered by, and an index key has its limits. */
const text = rules.line(512);
const id = (value: string): string | undefined => (/^\S*$/.test(value) ? text(value) : 'must have no spaces in it');
const MAX_ALIASES = 100;
const MAX_EVENTS = 1000;

/** What is wrong with an advisory. Fields that the contract requires may be missing: not every source knows them. */
export function advisoryProblems(advisory: Advisory): FieldViolation[] {
  const { advisoryId, legacyAdvisoryId, aliases, events } = advisory;
  const found: FieldViolation[] = [];
  const refuse = (field: string, description: string | undefined): void => {
    if (description !== undefined) found.push({ field, description });
  };
  if (advisoryId !== '' && !isAdvisoryId(advisoryId)) refuse('advisory_id', 'must be of the form CGA-xxxx-xxxx-xxxx');
  if (aliases.length > MAX_ALIASES) refuse('aliases', `must have at most ${MAX_ALIASES} items`);
  if (events.length > MAX_EVENTS) refuse('events', `must have at most ${MAX_EVENTS} items`);

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
  for (const [at, { author, reviewer, type }] of events.entries()) {
    refuse(`events[${at}]`, type.case === undefined ? 'must say what happened' : undefined);
    refuse(`events[${at}].author`, text(author));
    refuse(`events[${at}].reviewer`, text(reviewer));
  }
  return found;
}
