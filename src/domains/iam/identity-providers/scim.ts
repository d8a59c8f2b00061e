import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  IdentityProvider_SCIM_CredentialState as CredentialState,
  type IdentityProvider,
  type IdentityProvider_SCIM,
  IdentityProvider_SCIMSchema,
} from '../../../contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import type { State, Stored } from '../../../resource/definition.ts';

/** Hashes of the valid SCIM tokens of an identity provider, in its private state. `previous` is for a rotation. */
export type ScimTokenHashes = { readonly current?: string; readonly previous?: string };

export const scimTokenHashes = (state: State | undefined): ScimTokenHashes => (state?.scim ?? {}) as ScimTokenHashes;

export const newEtag = (): string => randomBytes(8).toString('hex');

/** The SCIM block of a new identity provider. It is stored as NOT_ISSUED, LIVE or REVOKED: see credentialStateAt. */
export const newScim = (): IdentityProvider_SCIM =>
  create(IdentityProvider_SCIMSchema, { credentialState: CredentialState.NOT_ISSUED, etag: newEtag() });

/** Sets the fields of a SCIM block that are computed for responses. */
export function presentScim(scim: IdentityProvider_SCIM, endpointUrl: string, now: number): void {
  scim.endpointUrl = endpointUrl;
  scim.credentialState = credentialStateAt(scim, now);
  if (scim.credentialState !== CredentialState.ROTATING) delete scim.previousTokenExpireTime;
}

/** The state of the token at `now`: a stored LIVE becomes ROTATING or EXPIRED with time. */
export function credentialStateAt(scim: IdentityProvider_SCIM, now: number): CredentialState {
  if (scim.credentialState !== CredentialState.LIVE) return scim.credentialState;
  if (hasPassed(scim.tokenExpireTime, now)) return CredentialState.EXPIRED;
  const { previousTokenExpireTime: previous } = scim;
  return previous && !hasPassed(previous, now) ? CredentialState.ROTATING : CredentialState.LIVE;
}

const hasPassed = (expiry: Timestamp | undefined, now: number): boolean =>
  expiry !== undefined && now >= timestampMs(expiry);

/** A token with 256 random bits. The prefix lets scanners for leaked secrets recognise it. */
export const newScimToken = (): string => `cgscim_${randomBytes(32).toString('hex')}`;

/** A hash without salt or stretching, because 256 random bits cannot be guessed. */
export const hashScimToken = (token: string): string => createHash('sha256').update(token).digest('hex');

/** Whether the identity provider accepts `token` for provisioning at `now`. */
export function acceptsScimToken(
  { message: { scim }, state }: Stored<IdentityProvider>,
  token: string,
  now: number,
): boolean {
  if (!scim?.enabled) return false;
  const { current, previous } = scimTokenHashes(state);
  const matches = (hash: string | undefined) =>
    hash !== undefined && timingSafeEqual(Buffer.from(hash, 'hex'), Buffer.from(hashScimToken(token), 'hex'));
  const credentialState = credentialStateAt(scim, now);
  if (credentialState === CredentialState.ROTATING) return matches(current) || matches(previous);
  return credentialState === CredentialState.LIVE && matches(current);
}
