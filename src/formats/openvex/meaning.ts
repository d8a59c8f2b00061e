import type { EventJson, EventType } from '../advisory.ts';

/** What a statement says of a product, apart from which one. */
export interface Meaning {
  readonly status: 'not_affected' | 'affected' | 'fixed' | 'under_investigation';
  readonly justification?: string;
  readonly impact_statement?: string;
  readonly action_statement?: string;
  readonly status_notes?: string;
}

/** Why a product is not affected; of several of our types for one justification, the first is what we read it as. */
const justifications: readonly (readonly [type: string, justification: string])[] = [
  ['TYPE_COMPONENT_VULNERABILITY_MISMATCH', 'component_not_present'],
  ['TYPE_VULNERABLE_CODE_NOT_INCLUDED_IN_PACKAGE', 'vulnerable_code_not_present'],
  ['TYPE_VULNERABLE_CODE_VERSION_NOT_USED', 'vulnerable_code_not_present'],
  ['TYPE_VULNERABLE_CODE_NOT_IN_EXECUTION_PATH', 'vulnerable_code_not_in_execute_path'],
  ['TYPE_VULNERABLE_CODE_CANNOT_BE_CONTROLLED_BY_ADVERSARY', 'vulnerable_code_cannot_be_controlled_by_adversary'],
  ['TYPE_INLINE_MITIGATIONS_EXIST', 'inline_mitigations_already_exist'],
];
const CONTESTED = 'TYPE_VULNERABILITY_RECORD_ANALYSIS_CONTESTED';

export const isJustification = (text: string): boolean => justifications.some(([, known]) => known === text);

/** Every event is a statement; the newest statement about a product is the one that holds, as the newest event is. */
export function meaningOf(event: EventJson): Meaning {
  const { fixed, falsePositiveDetermination: falsePositive, patched } = event;
  if (fixed) return { status: 'fixed', ...notes(fixed.note) };
  if (patched) return { status: 'fixed', ...notes(patched.note) };
  if (falsePositive) return { status: 'not_affected', ...reasons(falsePositive) };
  // Affected products need to be told what to do (OpenVEX specification, "Status Labels").
  const { truePositiveDetermination, fixNotPlanned, pendingUpstreamFix, analysisNotPlanned } = event;
  if (truePositiveDetermination) return affected(truePositiveDetermination.note, 'No fix is available yet.');
  if (fixNotPlanned) return affected(fixNotPlanned.note, 'No fix is planned.');
  if (pendingUpstreamFix) return affected(pendingUpstreamFix.note, 'A fix is expected from upstream.');
  return { status: 'under_investigation', ...notes(analysisNotPlanned?.note) };
}

const notes = (note: string | undefined): { status_notes?: string } => (note ? { status_notes: note } : {});

const affected = (note: string | undefined, advice: string): Meaning => ({
  status: 'affected',
  action_statement: note || advice,
});

/** Either a justification or a statement is needed. */
function reasons({ type, note }: { type?: string; note?: string }): Partial<Meaning> {
  const justification = justifications.find(([known]) => known === type)?.[1];
  if (justification !== undefined) return { justification, ...(note && { impact_statement: note }) };
  return { impact_statement: note || 'The record of the vulnerability is disputed.' };
}

/** What happened, as far as a statement tells. */
export function eventOf(meaning: Meaning, version: string | undefined): EventType {
  const { status, justification, impact_statement, action_statement, status_notes } = meaning;
  switch (status) {
    case 'fixed':
      return { fixed: { ...(version && { fixedVersion: version }), ...(status_notes && { note: status_notes }) } };
    case 'not_affected': {
      const type = justifications.find(([, known]) => known === justification)?.[0] ?? CONTESTED;
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
