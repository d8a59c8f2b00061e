import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type ApiError, denied, invalid, unauthenticated } from '../../base/errors.ts';
import { canonicalIssuer } from '../../base/issuer-url.ts';
import { ROOT, rootOf, type Uid } from '../../base/uid.ts';
import { IdentitySchema } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import type { IdentityProvider } from '../../contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { Auth, SessionSchema } from '../../contract/gen/platform/auth/v1/auth.platform_pb.js';
import { disabledOf } from '../../domains/iam/disabled.ts';
import { identities } from '../../domains/iam/identities/identities.ts';
import { JOINED_PROVIDERS, joinedProvidersOf } from '../../domains/iam/identities/joined-providers.ts';
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
import { requireEnabled } from './login-validity.ts';
import { countRegistration } from './registration-quota.ts';

export interface RegistrationOptions {
  readonly accessTokens: Pick<AccessTokens, 'verify'>;
  readonly verifyUnregistered: VerifyUnregistered;
  readonly publicUrl: string;
}

/** Creates the identity of the user who calls, and gives it a role at a group. */
export const registerOperation = ({ accessTokens, verifyUnregistered, publicUrl }: RegistrationOptions): Operations =>
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
      requireEnabled(await find(ctx.db, identities, uid));
      // Serializes concurrent registrations, because all of them write this row.
      await putSetting(ctx.db, 'registration.last', uid);
      const group =
        code === '' ? await joinThroughProviders(ctx, uid, user) : await joinByInvite(ctx, uid, user, code, publicUrl);
      return create(SessionSchema, { identity: uid, group });
    },

    event: (_ctx, _request, session) => ({
      subject: '',
      extensions: { group: session.group },
      body: { schema: SessionSchema, message: session },
    }),
  });

/** Returns the group of the invite. */
async function joinByInvite(
  ctx: WriteContext,
  uid: Uid,
  user: FederatedClaims,
  code: string,
  publicUrl: string,
): Promise<string> {
  if (!(await find(ctx.db, identities, uid))) await insertIdentity(ctx, uid, user);
  const { issuer, audiences, email } = user;
  const proof = email && { ...email, issuer, audiences, isForServer: audiences.includes(publicUrl) };
  const { group } = await redeemInvite(ctx, code, uid, proof);
  const refusal = await countRegistration(ctx, group);
  if (refusal) throw refusal;
  return group;
}

/**
 * Gives a user the default roles of the identity providers at their groups, and returns the group of the oldest one. Only
 * the first registration through a provider does so: a role that was revoked stays revoked. Several organizations may
 * have a provider with the same issuer and client, and none of these prevents the users from joining the others.
 */
async function joinThroughProviders(ctx: WriteContext, uid: Uid, user: FederatedClaims): Promise<string> {
  const registered = await find(ctx.db.forUpdate, identities, uid);
  const providers = await findProviders(ctx.db, user);
  const [oldest] = providers;
  if (!oldest && !registered) {
    throw denied('registration requires an invite; ask an owner of the group for one and send its code');
  }
  const joined = joinedProvidersOf(registered);
  const isNew = (provider: Stored<IdentityProvider>): boolean => !joined.includes(provider.uid);
  if (!providers.some(isNew)) {
    ctx.unchanged();
    return oldest?.parent ?? '';
  }
  const added = await withinQuota(ctx, providers.filter(isNew));
  const state = { ...registered?.state, [JOINED_PROVIDERS]: [...joined, ...added.map((provider) => provider.uid)] };
  if (registered) await update(ctx.db, identities, registered, { message: registered.message, state }, ctx.now);
  else await insertIdentity(ctx, uid, user, state);
  // The caller needs no permission to assign the roles: the creators of the providers had it.
  for (const { parent, message } of added) await ensureRoleBinding(ctx, parent, uid, message.defaultRole);
  return oldest?.parent ?? '';
}

/** Those providers whose organizations have room. An organization that has none does not keep a person out of others. */
async function withinQuota(
  ctx: WriteContext,
  providers: readonly Stored<IdentityProvider>[],
): Promise<Stored<IdentityProvider>[]> {
  const joinable: Stored<IdentityProvider>[] = [];
  let refusal: ApiError | undefined;
  for (const provider of providers) {
    const refused = await countRegistration(ctx, provider.parent);
    if (refused) refusal = refused;
    else joinable.push(provider);
  }
  if (refusal && joinable.length === 0) throw refusal;
  return joinable;
}

/** Returns the providers that a token was issued for, the oldest one of each organization, by age. */
async function findProviders(
  db: Reader,
  { issuer, audiences }: FederatedClaims,
): Promise<readonly Stored<IdentityProvider>[]> {
  const uids = await findReferring(db, identityProviders, 'issuer', canonicalIssuer(issuer));
  const byAge = (await findAll(db, identityProviders, uids))
    .filter(
      ({ message: { configuration }, state }) =>
        !disabledOf(state) && configuration.case === 'oidc' && audiences.includes(configuration.value.clientId),
    )
    .sort((a, b) => a.created - b.created || (a.uid < b.uid ? -1 : 1));
  return [...Map.groupBy(byAge, ({ uid }) => rootOf(uid)).values()].flatMap(([oldest]) => oldest ?? []);
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
