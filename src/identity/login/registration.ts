import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { denied, invalid, unauthenticated } from '../../base/errors.ts';
import { canonicalIssuer } from '../../base/issuer-url.ts';
import { ROOT } from '../../base/uid.ts';
import { IdentitySchema } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import type { IdentityProvider } from '../../contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import {
  type RegistrationRequest,
  type Session,
  SessionSchema,
} from '../../contract/gen/platform/auth/v1/auth.platform_pb.js';
import { identities } from '../../domains/iam/identities/identities.ts';
import { stableUid } from '../../domains/iam/identities/stable-uid.ts';
import { identityProviders } from '../../domains/iam/identity-providers/identity-providers.ts';
import { bind, redeemInvite } from '../../domains/iam/joining/group-invites.ts';
import type { State, Stored } from '../../resource/definition.ts';
import type { Operation, WriteContext } from '../../resource/operation.ts';
import { find, findAll, findReferring } from '../../resource/read.ts';
import { insert, update } from '../../resource/write.ts';
import { putSetting } from '../../store/settings.ts';
import type { Reader } from '../../store/store.ts';
import type { UpstreamClaims } from '../sts/exchange.ts';
import { bearerToken, type Tokens } from '../tokens/access-tokens.ts';

/**
 * Verifies a third party's token that no identity need match yet: its signature, its times, and that it is meant for
 * this server or for a client id of an identity provider here. Refuses an issuer that nothing here names.
 */
export type VerifyStranger = (token: string) => Promise<UpstreamClaims>;

export interface RegistrationOptions {
  readonly tokens: Pick<Tokens, 'verify'>;
  readonly verifyStranger: VerifyStranger;
}

/** Makes an identity of the person who calls, and takes them into a group. */
export function registration({ tokens, verifyStranger }: RegistrationOptions): Operation {
  return {
    mode: 'write',

    async prepare({ authorization }) {
      const token = bearerToken(authorization);
      if (token === '') throw unauthenticated('send a token of your issuer as Authorization: Bearer <token>');
      if (await tokens.verify(token)) throw denied('this token is one of ours: register with a token of your issuer');
      return verifyStranger(token);
    },

    async run(ctx, message, prepared) {
      const request = message as RegistrationRequest;
      const person = prepared as UpstreamClaims;
      const uid = stableUid(person.issuer, person.subject);
      if (request.identityId !== '' && request.identityId !== uid) {
        throw invalid('identity_id', `must be ${uid}, which follows from issuer and subject, or absent`);
      }
      // Somebody who registers twice at the same time waits here for the first.
      await putSetting(ctx.db, 'registration.last', uid);
      const group = request.code === '' ? await enter(ctx, uid, person) : await join(ctx, uid, person, request.code);
      return create(SessionSchema, { identity: uid, group });
    },

    event: (_ctx, _request, response) => ({
      subject: '',
      extensions: { group: (response as Session).group },
      body: { schema: SessionSchema, message: response },
    }),
  };
}

/** With an invite: into its group, with its role. */
async function join(ctx: WriteContext, uid: string, person: UpstreamClaims, code: string): Promise<string> {
  if (!(await find(ctx.db, identities, uid))) await admit(ctx, uid, person);
  const { group } = await redeemInvite(ctx, code, uid, person.email);
  return group;
}

/** Through an identity provider: into its group, with its default role, the first time only. A role that was taken away stays so. */
async function enter(ctx: WriteContext, uid: string, person: UpstreamClaims): Promise<string> {
  const known = await find(ctx.db.forUpdate, identities, uid);
  const provider = await providerOf(ctx.db, person);
  if (!provider && !known) throw denied('an invite is needed: ask somebody inside for one and send its code');
  const entered = enteredBy(known);
  if (!provider || entered.includes(provider.uid)) {
    ctx.unchanged();
    return provider?.parent ?? '';
  }
  const state = { ...known?.state, [ENTERED_BY]: [...entered, provider.uid] };
  if (known) await update(ctx.db, identities, known, { message: known.message, state }, ctx.now);
  else await admit(ctx, uid, person, state);
  // What the provider gives was granted by whoever set it up.
  await bind(ctx, provider.parent, uid, (provider.message as IdentityProvider).defaultRole);
  return provider.parent;
}

/** In the state of an identity: the providers that have let it in. */
const ENTERED_BY = 'identityProviders';

const enteredBy = (identity: Stored | undefined): readonly string[] =>
  (identity?.state?.[ENTERED_BY] as readonly string[] | undefined) ?? [];

/** The provider that the token was made for: the oldest, so that nobody diverts people by a copy of it. */
async function providerOf(db: Reader, { issuer, audiences }: UpstreamClaims): Promise<Stored | undefined> {
  const uids = await findReferring(db, identityProviders, 'issuer', canonicalIssuer(issuer));
  return (await findAll(db, identityProviders, uids))
    .filter(({ message }) => {
      const { configuration } = message as IdentityProvider;
      return configuration.case === 'oidc' && audiences.includes(configuration.value.clientId);
    })
    .reduce<Stored | undefined>((oldest, one) => (oldest && oldest.created <= one.created ? oldest : one), undefined);
}

async function admit({ db, now }: WriteContext, uid: string, person: UpstreamClaims, state?: State): Promise<void> {
  const { issuer, subject, email } = person;
  const identity = create(IdentitySchema, {
    name: nameFor(person),
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

/** Names take few characters; the e-mail address stays recognisable. */
const nameFor = ({ subject, email }: UpstreamClaims): string =>
  (email?.address ?? subject)
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .slice(0, 63);
