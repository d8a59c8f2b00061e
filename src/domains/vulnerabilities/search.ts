import { splitNameParts, splitWords } from '../../base/search-terms.ts';
import type { Advisory } from '../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';

/** `cve-2024-1234`: ids of advisories and vulnerabilities look like this, some names do too, and few advisories share one. */
const ID = /^[^-]+-[^-]+-/;

const ROLES = ['advisory', 'legacy', 'alias', 'name'] as const;
type Role = (typeof ROLES)[number];

/** An id and what it is to an advisory; upper and lower case are the same. */
export const idAs =
  (role: Role) =>
  (id: string): string =>
    id === '' ? '' : `${role} ${id.toLowerCase()}`;

/** A vulnerability or an advisory by any id that it has or had. */
export const anyIdAs = (id: string): string[] => [idAs('advisory')(id), idAs('legacy')(id), idAs('alias')(id)];

/** All ids by which an advisory is found, and names that look like one. */
export const idsOf = (advisory: Advisory): string[] => [
  idAs('advisory')(advisory.advisoryId),
  idAs('legacy')(advisory.legacyAdvisoryId ?? ''),
  ...advisory.aliases.map(idAs('alias')),
  ...namesOf(advisory).filter(isId).map(idAs('name')),
];

/** All other words by which an advisory is found: the parts of names, and ids of other forms. */
export function wordsOf(advisory: Advisory): string[] {
  const ids = [advisory.legacyAdvisoryId ?? '', ...advisory.aliases].flatMap(splitWords).filter((id) => !isId(id));
  return [...ids, ...namesOf(advisory)].flatMap(splitNameParts);
}

/** What a search asks for, word by word. `django` finds `py3-django`, and `cve-2024-1234` a name as well as an alias. */
export const searched = (query: string): { field: string; values: string[] }[] =>
  splitWords(query).flatMap((word) =>
    isId(word)
      ? [{ field: 'ids', values: ROLES.map((role) => idAs(role)(word)) }]
      : splitNameParts(word).map((part) => ({ field: 'words', values: [part] })),
  );

const isId = (word: string): boolean => ID.test(word);

/** A name with spaces is several. */
const namesOf = ({ artifactName, componentName }: Advisory): string[] =>
  [artifactName, componentName].flatMap(splitWords);
