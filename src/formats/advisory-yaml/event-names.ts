/** What the files call the types of events whose data is nothing but a note. */
export const noteTypes = {
  'true-positive-determination': 'truePositiveDetermination',
  'analysis-not-planned': 'analysisNotPlanned',
  'fix-not-planned': 'fixNotPlanned',
  'pending-upstream-fix': 'pendingUpstreamFix',
} as const;
export type NoteType = keyof typeof noteTypes;

export const isNoteType = (type: string): type is NoteType => Object.hasOwn(noteTypes, type);

/** The API's names of the data of a scan, and the files'. */
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

/** Why an artifact is not affected: `component-vulnerability-mismatch` is `TYPE_COMPONENT_VULNERABILITY_MISMATCH` in the API. */
export const falsePositiveTypes = [
  'component-vulnerability-mismatch',
  'inline-mitigations-exist',
  'vulnerability-record-analysis-contested',
  'vulnerable-code-cannot-be-controlled-by-adversary',
  'vulnerable-code-not-in-execution-path',
  'vulnerable-code-not-included-in-package',
  'vulnerable-code-version-not-used',
] as const;

export const apiName = (type: string): string => `TYPE_${type.toUpperCase().replaceAll('-', '_')}`;
export const fileName = (type: string): string =>
  type
    .replace(/^TYPE_/, '')
    .toLowerCase()
    .replaceAll('_', '-');
