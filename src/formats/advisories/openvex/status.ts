import type { EventJson, EventType } from '../advisory-json.ts';

/** The fields of a statement about the status of its product. */
export interface VexStatus {
  readonly status: 'not_affected' | 'affected' | 'fixed' | 'under_investigation';
  readonly justification?: string;
  readonly impact_statement?: string;
  readonly action_statement?: string;
  readonly status_notes?: string;
}

/**
 * False positive types with their justifications. A justification with several types is decoded to the first of them.
 */
const justificationsByType: readonly (readonly [type: string, justification: string])[] = [
  ['TYPE_COMPONENT_VULNERABILITY_MISMATCH', 'component_not_present'],
  ['TYPE_VULNERABLE_CODE_NOT_INCLUDED_IN_PACKAGE', 'vulnerable_code_not_present'],
  ['TYPE_VULNERABLE_CODE_VERSION_NOT_USED', 'vulnerable_code_not_present'],
  ['TYPE_VULNERABLE_CODE_NOT_IN_EXECUTION_PATH', 'vulnerable_code_not_in_execute_path'],
  ['TYPE_VULNERABLE_CODE_CANNOT_BE_CONTROLLED_BY_ADVERSARY', 'vulnerable_code_cannot_be_controlled_by_adversary'],
  ['TYPE_INLINE_MITIGATIONS_EXIST', 'inline_mitigations_already_exist'],
];
const DEFAULT_TYPE = 'TYPE_VULNERABILITY_RECORD_ANALYSIS_CONTESTED';

export const isJustification = (text: string): boolean =>
  justificationsByType.some(([, justification]) => justification === text);

/** Each event becomes a statement. As with events, the newest statement about a product is the valid one. */
export function vexStatusOf(event: EventJson): VexStatus {
  const { fixed, falsePositiveDetermination: falsePositive, patched } = event;
  if (fixed) return { status: 'fixed', ...statusNotes(fixed.note) };
  if (patched) return { status: 'fixed', ...statusNotes(patched.note) };
  if (falsePositive) return { status: 'not_affected', ...notAffectedReason(falsePositive) };
  // The status "affected" requires an action statement (OpenVEX specification, "Status Labels").
  const { truePositiveDetermination, fixNotPlanned, pendingUpstreamFix, analysisNotPlanned } = event;
  if (truePositiveDetermination) return affected(truePositiveDetermination.note, 'No fix is available yet.');
  if (fixNotPlanned) return affected(fixNotPlanned.note, 'No fix is planned.');
  if (pendingUpstreamFix) return affected(pendingUpstreamFix.note, 'A fix is expected from upstream.');
  return { status: 'under_investigation', ...statusNotes(analysisNotPlanned?.note) };
}

const statusNotes = (note: string | undefined): { status_notes?: string } => (note ? { status_notes: note } : {});

const affected = (note: string | undefined, defaultAction: string): VexStatus => ({
  status: 'affected',
  action_statement: note || defaultAction,
});

/** The status "not_affected" requires a justification or an impact statement. */
function notAffectedReason({ type, note }: { type?: string; note?: string }): Partial<VexStatus> {
  const justification = justificationsByType.find(([falsePositiveType]) => falsePositiveType === type)?.[1];
  if (justification !== undefined) return { justification, ...(note && { impact_statement: note }) };
  return { impact_statement: note || 'The record of the vulnerability is disputed.' };
}

/** The event that a statement describes. `version` is the version of its product. */
export function eventOf(vexStatus: VexStatus, version: string | undefined): EventType {
  const { status, justification, impact_statement, action_statement, status_notes } = vexStatus;
  switch (status) {
    case 'fixed':
      return { fixed: { ...(version && { fixedVersion: version }), ...(status_notes && { note: status_notes }) } };
    case 'not_affected': {
      const type = justificationsByType.find(([, name]) => name === justification)?.[0] ?? DEFAULT_TYPE;
      const note = impact_statement || status_notes;
      return { falsePositiveDetermination: { type, ...(note && { note }) } };
    }
    case 'affected': {
      const note = action_statement || status_notes;
      return { truePositiveDetermination: note ? { note } : {} };
    }
    case 'under_investigation':
      return { detection: { manual: {} } };
  }
}
