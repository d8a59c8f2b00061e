import { denied } from '../../../base/errors.ts';
import { canonicalIssuer } from '../../../base/issuer-url.ts';
import { isWithin } from '../../../base/uid.ts';
import { findAll, findReferring } from '../../../resource/read.ts';
import type { Reader } from '../../../store/store.ts';
import { firstOrganization } from '../groups/first-organization.ts';
import { identityProviders } from '../identity-providers/identity-providers.ts';

/** What a verified token says about the e-mail address of its user. */
export interface EmailProof {
  readonly address: string;
  readonly verified: boolean;
  readonly issuer: string;
  readonly audiences: readonly string[];
  /** Whether the token was issued for this server, and not for the client of an identity provider. */
  readonly isForServer: boolean;
}

/**
 * Refuses a token that does not prove an e-mail address to a group. Any tenant can add an issuer that says what it likes
 * about addresses, so only these issuers prove one: those of the identity providers of the group and its ancestors, and
 * of the organization of the operator. The messages do not name the address.
 */
export async function requireEmail(
  db: Reader,
  group: string,
  wanted: string,
  proof: EmailProof | undefined,
): Promise<void> {
  if (!proof?.verified) throw denied('the invite is for one e-mail address, and the token has none that is verified');
  if (!(await isTrusted(db, group, proof))) {
    throw denied(
      'the invite is for one e-mail address, and only an identity provider of its organization or of the operator can ' +
        'prove an address; log in with one of these, or ask for an invite without an address',
    );
  }
  if (proof.address.toLowerCase() !== wanted.toLowerCase()) {
    throw denied('the invite is for another e-mail address than that of the token');
  }
}

async function isTrusted(db: Reader, group: string, { issuer, audiences, isForServer }: EmailProof): Promise<boolean> {
  const operators = await firstOrganization(db);
  const uids = await findReferring(db, identityProviders, 'issuer', canonicalIssuer(issuer));
  const providers = await findAll(db, identityProviders, uids);
  return providers.some(({ parent, message: { configuration } }) => {
    if (parent !== operators && !isWithin(group, parent)) return false;
    return isForServer || (configuration.case === 'oidc' && audiences.includes(configuration.value.clientId));
  });
}
