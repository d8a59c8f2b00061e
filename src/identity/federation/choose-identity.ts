import { parentOf, ROOT, rootOf } from '../../base/uid.ts';

/** An identity that a verified token matches. */
export interface MatchedIdentity {
  readonly uid: string;
  /** In milliseconds. */
  readonly created: number;
  /**
   * How closely the identity describes the token:
   * - `exact`: it names the issuer and the subject.
   * - `pattern`: it restricts tokens by patterns or other claims.
   * - `any subject`: it accepts every subject of an issuer.
   */
  readonly specificity: 'exact' | 'pattern' | 'any subject';
  /** For the identity of a person: the organizations in which the person has a role. */
  readonly organizations?: readonly string[] | undefined;
}

/**
 * Decides which identity a federated token means. `addressed` has the roots of the uids that the request names. Returns
 * undefined when the request must name an identity, because those of several organizations match.
 *
 * 1. If the request addresses an organization, an identity of that organization is used, or a person with a role there.
 * 2. Otherwise a person: only the token of that issuer and subject can mean this person.
 * 3. Otherwise the identity of the only organization that has one.
 * 4. Otherwise the only exact one, if all other organizations accept any subject of the issuer.
 *
 * Within an organization an exact identity is preferred to others, and then the oldest, so that a newer identity does not
 * take over a login. An exact identity is not generally preferred to patterns of other organizations: any tenant could
 * then capture a token that another organization accepts by a pattern, such as `repo:my-org/.*`.
 */
export function chooseIdentity<M extends MatchedIdentity>(
  matches: readonly M[],
  addressed: readonly string[],
): M | undefined {
  const inAddressed = new Set(
    addressed.flatMap((organization) => preferred(matches.filter((match) => belongsTo(match, organization))) ?? []),
  );
  if (inAddressed.size > 0) return inAddressed.size === 1 ? [...inAddressed][0] : undefined;

  const person = preferred(matches.filter(isPerson));
  if (person) return person;

  const byOrganization = [...Map.groupBy(matches, ({ uid }) => rootOf(uid)).values()];
  if (byOrganization.length <= 1) return preferred(matches);
  const [exact, another] = byOrganization.filter((group) => group.some(isExact));
  const areOthersUnspecific = byOrganization.every(
    (group) => group === exact || group.every(({ specificity }) => specificity === 'any subject'),
  );
  return exact && !another && areOthersUnspecific ? preferred(exact) : undefined;
}

/** The preferred one of the identities of one organization. */
const preferred = <M extends MatchedIdentity>(matches: readonly M[]): M | undefined =>
  matches.toSorted(
    (a, b) => Number(isExact(b)) - Number(isExact(a)) || a.created - b.created || (a.uid < b.uid ? -1 : 1),
  )[0];

const isExact = ({ specificity }: MatchedIdentity): boolean => specificity === 'exact';

/** The identity of a person has no parent. */
const isPerson = ({ uid }: MatchedIdentity): boolean => parentOf(uid) === ROOT;

const belongsTo = (match: MatchedIdentity, organization: string): boolean =>
  rootOf(match.uid) === organization || (match.organizations?.includes(organization) ?? false);
