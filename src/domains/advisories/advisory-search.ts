import { splitNameParts, splitWords } from '../../base/search-terms.ts';
import type { Advisory } from '../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';

/** The form of advisory and vulnerability ids, such as `cve-2024-1234`. Some names match it too. */
const ID = /^[^-]+-[^-]+-/;

const ROLES = ['advisory', 'legacy', 'alias', 'name'] as const;
type Role = (typeof ROLES)[number];

/** The value of the reference `ids` for an id in a role of an advisory. Case is ignored. */
export const idKey =
  (role: Role) =>
  (id: string): string =>
    id === '' ? '' : `${role} ${id.toLowerCase()}`;

/** The values of the reference `ids` that find advisories by any of their ids, current or former. */
export const idKeysInAnyRole = (id: string): string[] => [
  idKey('advisory')(id),
  idKey('legacy')(id),
  idKey('alias')(id),
];

/** All ids of an advisory, and its names that have the form of an id. */
export const idKeysOf = (advisory: Advisory): string[] => [
  idKey('advisory')(advisory.advisoryId),
  idKey('legacy')(advisory.legacyAdvisoryId ?? ''),
  ...advisory.aliases.map(idKey('alias')),
  ...namesOf(advisory).filter(isId).map(idKey('name')),
];

/** All other words by which a search finds an advisory: the parts of its names, and aliases of other forms. */
export function searchWordsOf(advisory: Advisory): string[] {
  const ids = [advisory.legacyAdvisoryId ?? '', ...advisory.aliases].flatMap(splitWords).filter((id) => !isId(id));
  return [...ids, ...namesOf(advisory)].flatMap(splitNameParts);
}

/** The filters of a search, one for each word. `django` finds `py3-django`; `cve-2024-1234` finds ids and names. */
export const toSearchFilters = (query: string): { field: string; values: string[] }[] =>
  splitWords(query).flatMap((word) =>
    isId(word)
      ? [{ field: 'ids', values: ROLES.map((role) => idKey(role)(word)) }]
      : splitNameParts(word).map((part) => ({ field: 'words', values: [part] })),
  );

const isId = (word: string): boolean => ID.test(word);

const namesOf = ({ artifactName, componentName }: Advisory): string[] =>
  [artifactName, componentName].flatMap(splitWords);
