import { unauthenticated } from '../../base/errors.ts';
import { canonicalIssuer } from '../../base/issuer-url.ts';
import { type ParentUid, parentOf, ROOT, type Uid } from '../../base/uid.ts';
import type { Identity } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import type { IdentityProvider } from '../../contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { disabledOf } from '../../domains/iam/disabled.ts';
import { joinedProvidersOf } from '../../domains/iam/identities/joined-providers.ts';
import { identityProviders } from '../../domains/iam/identity-providers/identity-providers.ts';
import type { Stored } from '../../resource/definition.ts';
import { find, findAll, findReferring } from '../../resource/read.ts';
import type { Reader } from '../../store/store.ts';

/** Refuses a login through an identity provider that was deleted or disabled, or that has another issuer now. */
export async function requireProvider(db: Reader, identity: Stored<Identity>, uid: string): Promise<void> {
  const provider = await find(db, identityProviders, uid);
  if (!provider) throw unauthenticated('the identity provider of this token was deleted; log in through another one');
  if (disabledOf(provider.state)) {
    throw unauthenticated('the identity provider of this token is disabled; ask an owner of its group to enable it');
  }
  const issuer = issuerOf(identity.message);
  if (issuer !== undefined && !isActive(provider, issuer)) {
    throw unauthenticated('the identity provider of this token has another issuer now; log in again');
  }
}

/**
 * Returns the groups at which a person has no access any more: it has registered through an identity provider of the
 * group, and the group has no such provider any more. Throws UNAUTHENTICATED when no identity provider of the server has
 * the issuer of the person any more. Role bindings are not deleted, so that enabling a provider restores the access.
 */
export async function findEndedGroups(db: Reader, identity: Stored<Identity>): Promise<readonly ParentUid[]> {
  const issuer = identity.parent === ROOT ? issuerOf(identity.message) : undefined;
  // A machine, or the first owner. Only people register through identity providers.
  if (issuer === undefined) return [];
  const joined = joinedProvidersOf(identity) as readonly Uid[];
  const active = (await findAll(db, identityProviders, joined)).filter((provider) => isActive(provider, issuer));
  if (active.length === 0 && !(await hasActiveProvider(db, issuer))) {
    throw unauthenticated('no identity provider of this server has the issuer of this identity any more; ask an owner');
  }
  const groups = new Set(active.map(({ parent }) => parent));
  return [...new Set(joined.map((uid) => parentOf(uid)))].filter((group) => !groups.has(group));
}

async function hasActiveProvider(db: Reader, issuer: string): Promise<boolean> {
  for (const uid of await findReferring(db, identityProviders, 'issuer', issuer)) {
    const provider = await find(db, identityProviders, uid);
    if (provider && isActive(provider, issuer)) return true;
  }
  return false;
}

/** The exact issuer of the tokens of an identity. Undefined for static keys and for patterns. */
function issuerOf({ relationship }: Identity): string | undefined {
  if (relationship.case !== 'claimMatch' || relationship.value.iss.case !== 'issuer') return undefined;
  return canonicalIssuer(relationship.value.iss.value);
}

const isActive = ({ message, state }: Stored<IdentityProvider>, issuer: string): boolean =>
  !disabledOf(state) && canonicalIssuer(message.configuration.value?.issuer ?? '') === issuer;
