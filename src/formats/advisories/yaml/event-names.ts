/** Event types whose data is only a note: the name in files and the name in the API. */
export const noteTypes = {
  'true-positive-determination': 'truePositiveDetermination',
  'analysis-not-planned': 'analysisNotPlanned',
  'fix-not-planned': 'fixNotPlanned',
  'pending-upstream-fix': 'pendingUpstreamFix',
} as const;
export type NoteType = keyof typeof noteTypes;

export const isNoteType = (type: string): type is NoteType => Object.hasOwn(noteTypes, type);

/** The fields of a scan: the name in the API and the name in files. */
export const scanFields = {
  scanner: 'scanner',
  subpackage: 'subpackageName',
  componentId: 'componentID',
  component: 'componentName',
  componentVersion: 'componentVersion',
  componentType: 'componentType',
  componentLocation: 'componentLocation',
} as const;

export const nvdFields = { cpeSearched: 'cpeSearched', cpeFound: 'cpeFound' } as const;

/** The reasons for a false positive. In the API, `inline-mitigations-exist` is `TYPE_INLINE_MITIGATIONS_EXIST`. */
export const falsePositiveTypes = [
  'component-vulnerability-mismatch',
  'inline-mitigations-exist',
  'vulnerability-record-analysis-contested',
  'vulnerable-code-cannot-be-controlled-by-adversary',
  'vulnerable-code-not-in-execution-path',
  'vulnerable-code-not-included-in-package',
  'vulnerable-code-version-not-used',
] as const;

export const apiTypeOf = (type: string): string => `TYPE_${type.toUpperCase().replaceAll('-', '_')}`;
export const yamlTypeOf = (type: string): string =>
  type
    .replace(/^TYPE_/, '')
    .toLowerCase()
    .replaceAll('_', '-');
