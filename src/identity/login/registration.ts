import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { denied, invalid, unauthenticated } from '../../base/errors.ts';
import { canonicalIssuer } from '../../base/issuer-url.ts';
import { ROOT, type Uid } from '../../base/uid.ts';
import { IdentitySchema } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import type { IdentityProvider } from '../../contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { Auth, SessionSchema } from '../../contract/gen/platform/auth/v1/auth.platform_pb.js';
import { identities } from '../../domains/iam/identities/identities.ts';
import { stableUid } from '../../domains/iam/identities/stable-uid.ts';
import { identityProviders } from '../../domains/iam/identity-providers/identity-providers.ts';
import { ensureRoleBinding, redeemInvite } from '../../domains/iam/joining/group-invites.ts';
import type { State, Stored } from '../../resource/definition.ts';
import { type Operations, type WriteContext, writeOperation } from '../../resource/operation.ts';
import { find, findAll, findReferring } from '../../resource/read.ts';
import { insert, update } from '../../resource/write.ts';
import { putSetting } from '../../store/settings.ts';
import type { Reader } from '../../store/store.ts';
import type { FederatedClaims, VerifyUnregistered } from '../federation/federated-login.ts';
import { type AccessTokens, bearerToken } from '../tokens/access-tokens.ts';

export interface RegistrationOptions {
  readonly accessTokens: Pick<AccessTokens, 'verify'>;
  readonly verifyUnregistered: VerifyUnregistered;
}

/** Creates the identity of the user who calls, and gives it a role at a group. */
export const registerOperation = ({ accessTokens, verifyUnregistered }: RegistrationOptions): Operations =>
  writeOperation(Auth.method.register, {
    async prepare({ authorization }) {
      const token = bearerToken(authorization);
      if (token === '') {
        throw unauthenticated('send a token of your identity provider as Authorization: Bearer <token>');
      }
      if (await accessTokens.verify(token)) {
        throw denied('this is an access token of this server; register with a token of your identity provider');
      }
      return verifyUnregistered(token);
    },

    async run(ctx, { identityId, code }, user) {
      const uid = stableUid(user.issuer, user.subject);
      if (identityId !== '' && identityId !== uid) {
        throw invalid('identity_id', `must be ${uid}, which is derived from the issuer and subject, or empty`);
      }
      // Serializes concurrent registrations, because all of them write this row.
      await putSetting(ctx.db, 'registration.last', uid);
      const group = code === '' ? await joinThroughProvider(ctx, uid, user) : await joinByInvite(ctx, uid, user, code);
      return create(SessionSchema, { identity: uid, group });
    },

    event: (_ctx, _request, session) => ({
      subject: '',
      extensions: { group: session.group },
      body: { schema: SessionSchema, message: session },
    }),
  });

/** Returns the group of the invite. */
async function joinByInvite(ctx: WriteContext, uid: Uid, user: FederatedClaims, code: string): Promise<string> {
  if (!(await find(ctx.db, identities, uid))) await insertIdentity(ctx, uid, user);
  const { group } = await redeemInvite(ctx, code, uid, user.email);
  return group;
}

/**
 * Gives a user the default role of the identity provider at its group, and returns the group. Only the first
 * registration through a provider does so: a role that was revoked stays revoked.
 */
async function joinThroughProvider(ctx: WriteContext, uid: Uid, user: FederatedClaims): Promise<string> {
  const registered = await find(ctx.db.forUpdate, identities, uid);
  const provider = await findProvider(ctx.db, user);
  if (!provider && !registered) {
    throw denied('registration requires an invite; ask an owner of the group for one and send its code');
  }
  const joined = joinedProvidersOf(registered);
  if (!provider || joined.includes(provider.uid)) {
    ctx.unchanged();
    return provider?.parent ?? '';
  }
  const state = { ...registered?.state, [JOINED_PROVIDERS]: [...joined, provider.uid] };
  if (registered) await update(ctx.db, identities, registered, { message: registered.message, state }, ctx.now);
  else await insertIdentity(ctx, uid, user, state);
  // The caller needs no permission to assign the role: the creator of the provider had it.
  await ensureRoleBinding(ctx, provider.parent, uid, provider.message.defaultRole);
  return provider.parent;
}

/** The key in the state of an identity under which the uids of the providers are stored that it has joined through. */
const JOINED_PROVIDERS = 'identityProviders';

const joinedProvidersOf = (identity: Stored | undefined): readonly string[] =>
  (identity?.state?.[JOINED_PROVIDERS] as readonly string[] | undefined) ?? [];

/** Returns the oldest provider that a token was issued for, so that a copy of a provider does not divert its users. */
async function findProvider(
  db: Reader,
  { issuer, audiences }: FederatedClaims,
): Promise<Stored<IdentityProvider> | undefined> {
  const uids = await findReferring(db, identityProviders, 'issuer', canonicalIssuer(issuer));
  return (await findAll(db, identityProviders, uids))
    .filter(
      ({ message: { configuration } }) =>
        configuration.case === 'oidc' && audiences.includes(configuration.value.clientId),
    )
    .reduce<Stored<IdentityProvider> | undefined>(
      (oldest, provider) => (oldest && oldest.created <= provider.created ? oldest : provider),
      undefined,
    );
}

async function insertIdentity(
  { db, now }: WriteContext,
  uid: Uid,
  user: FederatedClaims,
  state?: State,
): Promise<void> {
  const { issuer, subject, email } = user;
  const identity = create(IdentitySchema, {
    name: nameFor(user),
    email: email?.verified ? email.address : '',
    emailUnverified: email && !email.verified ? email.address : '',
    lastSeenTime: timestampFromMs(now),
    relationship: {
      case: 'claimMatch',
      value: {
        iss: { case: 'issuer', value: canonicalIssuer(issuer) },
        sub: { case: 'subject', value: subject },
      },
    },
  });
  await insert(db, identities, { message: identity, uid, parent: ROOT, state }, now);
}

/** Replaces characters that names may not contain. The e-mail address stays recognisable. */
const nameFor = ({ subject, email }: FederatedClaims): string =>
  (email?.address ?? subject)
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .slice(0, 63);
