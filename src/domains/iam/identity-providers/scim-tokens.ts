import { clone, create, type DescMessage, type Message } from '@bufbuild/protobuf';
import {
  type Duration,
  durationFromMs,
  durationMs,
  type Timestamp,
  timestampFromMs,
  timestampMs,
} from '@bufbuild/protobuf/wkt';
import { ApiError, Code, invalid, notFound, precondition } from '../../../base/errors.ts';
import { parentOf } from '../../../base/uid.ts';
import {
  IdentityProvider_SCIM_CredentialState as CredentialState,
  type GenerateScimTokenRequest,
  GenerateScimTokenResponseSchema,
  type IdentityProvider,
  type IdentityProvider_SCIM,
  IdentityProviderSchema,
  IdentityProvidersService,
  type RegenerateScimTokenRequest,
  RegenerateScimTokenResponseSchema,
  type RevokeScimTokenRequest,
  RevokeScimTokenResponseSchema,
  type SetScimEnabledRequest,
  SetScimEnabledResponseSchema,
} from '../../../contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import type { Operation, Operations, WriteContext } from '../../../resource/operation.ts';
import { find } from '../../../resource/read.ts';
import { update } from '../../../resource/write.ts';
import { identityProviders, scimEndpoint } from './identity-providers.ts';
import { hashOf, newEtag, newScim, newToken, type ScimTokens, stateAt } from './scim.ts';

const HOUR = 60 * 60 * 1000;
const DAY = 24 * HOUR;
const LIFETIME = 365 * DAY;
/** Two years, one of which may be a leap year. */
const MAX_LIFETIME = 731 * DAY;
const OVERLAP = HOUR;
const MAX_OVERLAP = DAY;

/** The life of the token by which an organization's directory provisions people (RFC 7644). */
export function scimTokenOperations(publicUrl: () => string): Operations {
  const service = IdentityProvidersService.typeName;
  return {
    [`${service}/GenerateScimToken`]: operation(GenerateScimTokenResponseSchema, (ctx, request) =>
      generate(ctx, request as GenerateScimTokenRequest, publicUrl),
    ),
    [`${service}/RegenerateScimToken`]: operation(RegenerateScimTokenResponseSchema, (ctx, request) =>
      regenerate(ctx, request as RegenerateScimTokenRequest, publicUrl),
    ),
    [`${service}/RevokeScimToken`]: operation(RevokeScimTokenResponseSchema, (ctx, request) =>
      revoke(ctx, request as RevokeScimTokenRequest),
    ),
    [`${service}/SetScimEnabled`]: operation(SetScimEnabledResponseSchema, (ctx, request) =>
      setEnabled(ctx, request as SetScimEnabledRequest),
    ),
  };
}

/** Events carry the answer, but never the token that is in some of them. */
function operation(schema: DescMessage, run: (ctx: WriteContext, request: Message) => Promise<Message>): Operation {
  return {
    mode: 'write',
    run,
    event(_ctx, request, response) {
      const subject = (request as RevokeScimTokenRequest).identityProviderUid;
      const message = Object.assign(clone(schema, response), 'token' in response && { token: '' });
      return { subject, extensions: { group: parentOf(subject) }, body: { schema, message } };
    },
  };
}

/** Issuing a first token starts provisioning and revoking it ends it; in between the switch can pause it. */
async function generate(ctx: WriteContext, request: GenerateScimTokenRequest, publicUrl: () => string) {
  const { identityProviderUid: uid } = request;
  const expireTime = endOf(request, ctx.now);
  const token = newToken();
  const { etag } = await changeScim(ctx, uid, undefined, (scim) => {
    const standing = stateAt(scim, ctx.now);
    if (standing === CredentialState.LIVE || standing === CredentialState.ROTATING) {
      throw precondition('SCIM_TOKEN_EXISTS', uid, 'there is a SCIM token; regenerate it, or revoke it first');
    }
    scim.enabled = true;
    setTokenTimes(scim, expireTime, undefined);
    return { current: hashOf(token) };
  });
  const endpointUrl = scimEndpoint(publicUrl, uid);
  return create(GenerateScimTokenResponseSchema, {
    token,
    endpointUrl,
    identityProviderUid: uid,
    etag,
    ...(expireTime && { expireTime }),
  });
}

async function regenerate(ctx: WriteContext, request: RegenerateScimTokenRequest, publicUrl: () => string) {
  const { identityProviderUid: uid } = request;
  const expireTime = endOf(request, ctx.now);
  const overlap = overlapOf(request.overlap);
  const token = newToken();
  const { etag, previousTokenExpireTime } = await changeScim(ctx, uid, request.etag, (scim, { current }) => {
    if (scim.credentialState !== CredentialState.LIVE || current === undefined) {
      throw precondition('SCIM_TOKEN_MISSING', uid, 'there is no SCIM token to replace; generate one');
    }
    // Neither beyond its own end nor beyond that of its successor: once the current token has expired, none is accepted.
    const previousEnd = earliest(timestampFromMs(ctx.now + overlap), scim.tokenExpireTime, expireTime);
    setTokenTimes(scim, expireTime, previousEnd);
    return { current: hashOf(token), previous: current };
  });
  return create(RegenerateScimTokenResponseSchema, {
    token,
    endpointUrl: scimEndpoint(publicUrl, uid),
    identityProviderUid: uid,
    etag,
    requestedOverlap: durationFromMs(overlap),
    ...(previousTokenExpireTime && { previousTokenExpireTime }),
    ...(expireTime && { expireTime }),
  });
}

/** Takes no etag: whoever has to stop a leaked token must not lose a race for it. */
async function revoke(ctx: WriteContext, { identityProviderUid }: RevokeScimTokenRequest) {
  const { etag, enabled } = await changeScim(ctx, identityProviderUid, undefined, (scim) => {
    scim.enabled = false;
    delete scim.tokenExpireTime;
    delete scim.previousTokenExpireTime;
    if (scim.credentialState === CredentialState.LIVE) scim.credentialState = CredentialState.REVOKED;
    return {};
  });
  const revokeTime = timestampFromMs(ctx.now);
  return create(RevokeScimTokenResponseSchema, { identityProviderUid, etag, enabled, revokeTime });
}

async function setEnabled(ctx: WriteContext, request: SetScimEnabledRequest) {
  const { identityProviderUid } = request;
  const { etag, enabled } = await changeScim(ctx, identityProviderUid, request.etag, (scim, tokens) => {
    scim.enabled = request.enabled;
    return tokens;
  });
  return create(SetScimEnabledResponseSchema, { identityProviderUid, enabled, etag });
}

/** Lets `change` work on the SCIM block of an identity provider and answer its tokens, and stores both under a new etag. */
async function changeScim(
  ctx: WriteContext,
  uid: string,
  etag: string | undefined,
  change: (scim: IdentityProvider_SCIM, tokens: ScimTokens) => ScimTokens,
): Promise<IdentityProvider_SCIM> {
  const before = await find(ctx.db.forUpdate, identityProviders, uid);
  if (!before) throw notFound(identityProviders.kind, uid);
  const message = clone(IdentityProviderSchema, before.message as IdentityProvider);
  message.scim ??= newScim();
  // AIP-154: a mismatch is ABORTED, which tells the client to read again and retry, as FAILED_PRECONDITION would not.
  if (etag !== undefined && etag !== message.scim.etag) {
    throw new ApiError(Code.ABORTED, 'Aborted: etag: SCIM has changed since this etag was read; read it again');
  }
  const scim = change(message.scim, (before.state?.scim ?? {}) as ScimTokens);
  message.scim.etag = newEtag();
  await update(ctx.db, identityProviders, before, { message, state: { ...before.state, scim } }, ctx.now);
  return message.scim;
}

function setTokenTimes(scim: IdentityProvider_SCIM, end: Timestamp | undefined, previousEnd: Timestamp | undefined) {
  scim.credentialState = CredentialState.LIVE;
  if (end) scim.tokenExpireTime = end;
  else delete scim.tokenExpireTime;
  if (previousEnd) scim.previousTokenExpireTime = previousEnd;
  else delete scim.previousTokenExpireTime;
}

/** When a new token ends; nothing for never. */
function endOf(
  { expireTime, neverExpires }: Pick<GenerateScimTokenRequest, 'expireTime' | 'neverExpires'>,
  now: number,
): Timestamp | undefined {
  if (neverExpires) {
    if (expireTime) throw invalid('never_expires', 'must not be set together with expire_time');
    return undefined;
  }
  const end = expireTime ? timestampMs(expireTime) : now + LIFETIME;
  if (!(end > now && end <= now + MAX_LIFETIME))
    throw invalid('expire_time', 'must be later than now, by two years at most');
  return timestampFromMs(end);
}

function overlapOf(overlap: Duration | undefined): number {
  const ms = overlap ? durationMs(overlap) : OVERLAP;
  if (!(ms >= 0 && ms <= MAX_OVERLAP)) throw invalid('overlap', 'must be 0 to 24 hours');
  return ms;
}

const earliest = (first: Timestamp, ...others: readonly (Timestamp | undefined)[]): Timestamp =>
  others.reduce((a: Timestamp, b) => (b && timestampMs(b) < timestampMs(a) ? b : a), first);
