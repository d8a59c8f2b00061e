import { clone, create, type DescMessage, type MessageShape } from '@bufbuild/protobuf';
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
import { type EventFacts, type Operations, type WriteContext, writeOperation } from '../../../resource/operation.ts';
import { find } from '../../../resource/read.ts';
import { update } from '../../../resource/write.ts';
import { identityProviders, scimEndpoint } from './identity-providers.ts';
import {
  credentialStateAt,
  hashScimToken,
  newEtag,
  newScim,
  newScimToken,
  type ScimTokenHashes,
  scimTokenHashes,
} from './scim.ts';

const HOUR = 60 * 60 * 1000;
const DAY = 24 * HOUR;
const DEFAULT_LIFETIME = 365 * DAY;
/** Two years, one of which may be a leap year. */
const MAX_LIFETIME = 731 * DAY;
const DEFAULT_OVERLAP = HOUR;
const MAX_OVERLAP = DAY;

/** The methods for the token with which the directory of an organization provisions users (SCIM, RFC 7644). */
export function scimTokenOperations(publicUrl: string): Operations {
  const { generateScimToken, regenerateScimToken, revokeScimToken, setScimEnabled } = IdentityProvidersService.method;
  return {
    ...writeOperation(generateScimToken, {
      run: (ctx, request) => generate(ctx, request, publicUrl),
      event: (_ctx, _request, response) => eventOf(GenerateScimTokenResponseSchema, response),
    }),
    ...writeOperation(regenerateScimToken, {
      run: (ctx, request) => regenerate(ctx, request, publicUrl),
      event: (_ctx, _request, response) => eventOf(RegenerateScimTokenResponseSchema, response),
    }),
    ...writeOperation(revokeScimToken, {
      run: revoke,
      event: (_ctx, _request, response) => eventOf(RevokeScimTokenResponseSchema, response),
    }),
    ...writeOperation(setScimEnabled, {
      run: setEnabled,
      event: (_ctx, _request, response) => eventOf(SetScimEnabledResponseSchema, response),
    }),
  };
}

/** The event has the response as its body, without the token that some responses contain. */
function eventOf<S extends DescMessage>(
  schema: S,
  response: MessageShape<S> & { readonly identityProviderUid: string },
): EventFacts {
  const subject = response.identityProviderUid;
  const message = Object.assign(clone(schema, response), 'token' in response && { token: '' });
  return { subject, extensions: { group: parentOf(subject) }, body: { schema, message } };
}

/** Issues the first token and enables provisioning. */
async function generate(ctx: WriteContext, request: GenerateScimTokenRequest, publicUrl: string) {
  const { identityProviderUid: uid } = request;
  const expireTime = expireTimeOf(request, ctx.now);
  const token = newScimToken();
  const { etag } = await changeScim(ctx, uid, undefined, (scim) => {
    const state = credentialStateAt(scim, ctx.now);
    if (state === CredentialState.LIVE || state === CredentialState.ROTATING) {
      throw precondition('SCIM_TOKEN_EXISTS', uid, 'there is a valid SCIM token; regenerate it, or revoke it first');
    }
    scim.enabled = true;
    setTokenTimes(scim, expireTime, undefined);
    return { current: hashScimToken(token) };
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

/** Replaces the token. The previous one stays valid for the requested overlap. */
async function regenerate(ctx: WriteContext, request: RegenerateScimTokenRequest, publicUrl: string) {
  const { identityProviderUid: uid } = request;
  const expireTime = expireTimeOf(request, ctx.now);
  const overlap = overlapOf(request.overlap);
  const token = newScimToken();
  const { etag, previousTokenExpireTime } = await changeScim(ctx, uid, request.etag, (scim, { current }) => {
    if (scim.credentialState !== CredentialState.LIVE || current === undefined) {
      throw precondition('SCIM_TOKEN_MISSING', uid, 'there is no SCIM token to replace; generate one');
    }
    // Not after its own expiry, nor after that of the new token: no token is accepted once the current one has expired.
    const previousExpireTime = earliest(timestampFromMs(ctx.now + overlap), scim.tokenExpireTime, expireTime);
    setTokenTimes(scim, expireTime, previousExpireTime);
    return { current: hashScimToken(token), previous: current };
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

/** Ends provisioning. Requires no etag, so that revoking a leaked token cannot fail because of a concurrent change. */
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

/** Pauses or resumes provisioning. The token stays as it is. */
async function setEnabled(ctx: WriteContext, request: SetScimEnabledRequest) {
  const { identityProviderUid } = request;
  const { etag, enabled } = await changeScim(ctx, identityProviderUid, request.etag, (scim, hashes) => {
    scim.enabled = request.enabled;
    return hashes;
  });
  return create(SetScimEnabledResponseSchema, { identityProviderUid, enabled, etag });
}

/** Changes the SCIM block of an identity provider and the hashes of its tokens, and stores both with a new etag. */
async function changeScim(
  ctx: WriteContext,
  uid: string,
  etag: string | undefined,
  change: (scim: IdentityProvider_SCIM, hashes: ScimTokenHashes) => ScimTokenHashes,
): Promise<IdentityProvider_SCIM> {
  const before = await find(ctx.db.forUpdate, identityProviders, uid);
  if (!before) throw notFound(identityProviders.kind, uid);
  const message = clone(IdentityProviderSchema, before.message);
  message.scim ??= newScim();
  // AIP-154: ABORTED tells the client to read again and retry. FAILED_PRECONDITION would not.
  if (etag !== undefined && etag !== message.scim.etag) {
    throw new ApiError(
      Code.ABORTED,
      'Aborted: etag: the SCIM settings have changed since you read this etag; read them again',
    );
  }
  const scim = change(message.scim, scimTokenHashes(before.state));
  message.scim.etag = newEtag();
  await update(ctx.db, identityProviders, before, { message, state: { ...before.state, scim } }, ctx.now);
  return message.scim;
}

function setTokenTimes(
  scim: IdentityProvider_SCIM,
  expireTime: Timestamp | undefined,
  previousExpireTime: Timestamp | undefined,
) {
  scim.credentialState = CredentialState.LIVE;
  if (expireTime) scim.tokenExpireTime = expireTime;
  else delete scim.tokenExpireTime;
  if (previousExpireTime) scim.previousTokenExpireTime = previousExpireTime;
  else delete scim.previousTokenExpireTime;
}

/** The expiry of a new token; undefined when it never expires. */
function expireTimeOf(
  { expireTime, neverExpires }: Pick<GenerateScimTokenRequest, 'expireTime' | 'neverExpires'>,
  now: number,
): Timestamp | undefined {
  if (neverExpires) {
    if (expireTime) throw invalid('never_expires', 'must not be set together with expire_time');
    return undefined;
  }
  const ms = expireTime ? timestampMs(expireTime) : now + DEFAULT_LIFETIME;
  if (!(ms > now && ms <= now + MAX_LIFETIME)) {
    throw invalid('expire_time', 'must be in the future, at most two years from now');
  }
  return timestampFromMs(ms);
}

function overlapOf(overlap: Duration | undefined): number {
  const ms = overlap ? durationMs(overlap) : DEFAULT_OVERLAP;
  if (!(ms >= 0 && ms <= MAX_OVERLAP)) throw invalid('overlap', 'must be 0 to 24 hours');
  return ms;
}

const earliest = (first: Timestamp, ...others: readonly (Timestamp | undefined)[]): Timestamp =>
  others.reduce((a: Timestamp, b) => (b && timestampMs(b) < timestampMs(a) ? b : a), first);
