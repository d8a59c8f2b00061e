import { type RequiredTerms, requiredIn } from '../base/terms.ts';
import { parentOf, ROOT, rootOf, type Uid } from '../base/uid.ts';
import { capabilitySetOf } from '../contract/capabilities.ts';
import { Capability } from '../contract/gen/capabilities/capabilities_pb.js';
import type { Identity } from '../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { acceptanceKey, termsAcceptances } from '../domains/iam/groups/terms.ts';
import type { Stored } from '../resource/definition.ts';
import { findByKeys } from '../resource/read.ts';
import type { Reader } from '../store/store.ts';
import type { Grant } from './create-caller.ts';

/** What a person must accept where, and what that leaves of its grants. */
export interface PersonTerms {
  /** All documents that are required, by organization. */
  readonly required: ReadonlyMap<string, readonly string[]>;
  /** Those of them that the person has not accepted. */
  readonly missing: ReadonlyMap<string, readonly string[]>;
  /** The grants outside of organizations in which a document is missing. */
  readonly accepted: readonly Grant[];
  readonly all: readonly Grant[];
  /** All grants, and those that let the person accept what is required. */
  readonly beforeAcceptance: readonly Grant[];
}

const ACCEPT = capabilitySetOf([Capability.CAP_TERMS_ACCEPT, Capability.CAP_TERMS_LIST]);

/** A person registered with the token of an issuer. Machines belong to a group, and the first owner has a key file. */
const isPerson = ({ uid, message }: Stored<Identity>): boolean =>
  parentOf(uid) === ROOT && message.relationship.case === 'claimMatch';

/** Returns undefined if no document is required of the identity in any organization where it has grants. */
export async function findPersonTerms(
  db: Reader,
  requiredTerms: RequiredTerms,
  identity: Stored<Identity>,
  grants: readonly Grant[],
  isRestricted: boolean,
): Promise<PersonTerms | undefined> {
  if (requiredTerms.size === 0 || !isPerson(identity)) return undefined;
  const organizations = [...new Set(grants.map(({ group }) => rootOf(group)))];
  const required = new Map(
    organizations.flatMap((organization) => {
      const documents = requiredIn(requiredTerms, organization);
      return documents.length > 0 ? [[organization, documents] as const] : [];
    }),
  );
  if (required.size === 0) return undefined;
  const keys = [...required].flatMap(([organization, documents]) =>
    documents.map((docId) => acceptanceKey(organization, docId, identity.uid)),
  );
  const found = await findByKeys(db, termsAcceptances, keys);
  const missing = new Map(
    [...required].flatMap(([organization, documents]) => {
      const lacking = documents.filter((docId) => !found.has(acceptanceKey(organization, docId, identity.uid)));
      return lacking.length > 0 ? [[organization, lacking] as const] : [];
    }),
  );
  // A restricted token was not issued to accept anything, unless it names the capability.
  const ownAcceptance = isRestricted
    ? []
    : [...required.keys()].map((group) => ({ group: group as Uid, capabilities: ACCEPT }));
  return {
    required,
    missing,
    all: grants,
    accepted: grants.filter(({ group }) => !missing.has(rootOf(group))),
    beforeAcceptance: [...grants, ...ownAcceptance],
  };
}
