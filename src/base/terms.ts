/** The documents that can be accepted and required, by id, with what people call them. */
export const TERMS_DOCUMENTS: Readonly<Record<string, string>> = {
  'guardener-tos.v1': 'Guardener terms of service',
  'sfdpa.v1': 'Data processing addendum',
  'skills-tos.v1': 'Skills terms of service',
};

export const TERMS_DOCUMENT_IDS: readonly string[] = Object.keys(TERMS_DOCUMENTS);

/** The documents that people must accept, by the uid of the organization; under `*` for all organizations. */
export type RequiredTerms = ReadonlyMap<string, readonly string[]>;

/** The documents that people must accept in an organization. */
export const requiredIn = (required: RequiredTerms, organization: string): readonly string[] => [
  ...new Set([...(required.get('*') ?? []), ...(required.get(organization) ?? [])]),
];
