import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  IdentityProvider_SCIM_CredentialState as CredentialState,
  type IdentityProvider,
  type IdentityProvider_SCIM,
  IdentityProvider_SCIMSchema,
} from '../../../contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import type { Stored } from '../../../resource/definition.ts';

/** Hashes of the tokens that a directory may present; they stay in the private state of the identity provider. */
export type ScimTokens = { readonly current?: string; readonly previous?: string };

export const newEtag = (): string => randomBytes(8).toString('hex');

/** Provisioning as it starts out. Stored are only NOT_ISSUED, LIVE and REVOKED: what time does to them is for readers. */
export const newScim = (): IdentityProvider_SCIM =>
  create(IdentityProvider_SCIMSchema, { credentialState: CredentialState.NOT_ISSUED, etag: newEtag() });

/** The block as it stands now. */
export function presentScim(scim: IdentityProvider_SCIM, endpointUrl: string, now: number): void {
  scim.endpointUrl = endpointUrl;
  scim.credentialState = stateAt(scim, now);
  if (scim.credentialState !== CredentialState.ROTATING) delete scim.previousTokenExpireTime;
}

export function stateAt(scim: IdentityProvider_SCIM, now: number): CredentialState {
  if (scim.credentialState !== CredentialState.LIVE) return scim.credentialState;
  if (!isAhead(scim.tokenExpireTime, now)) return CredentialState.EXPIRED;
  const { previousTokenExpireTime: previous } = scim;
  return previous && isAhead(previous, now) ? CredentialState.ROTATING : CredentialState.LIVE;
}

/** What has no end is ahead for ever. */
const isAhead = (end: Timestamp | undefined, now: number): boolean => end === undefined || now < timestampMs(end);

/** 256 random bits. The prefix lets scanners for leaked secrets recognise it. */
export const newToken = (): string => `cgscim_${randomBytes(32).toString('hex')}`;

/** A plain hash is enough: there is no guessing 256 random bits. */
export const hashOf = (token: string): string => createHash('sha256').update(token).digest('hex');

/** Whether a directory that presents `token` may provision through this identity provider now. */
export function acceptsScimToken({ message, state }: Stored, token: string, now: number): boolean {
  const { scim } = message as IdentityProvider;
  if (!scim?.enabled) return false;
  const { current, previous } = (state?.scim ?? {}) as ScimTokens;
  const is = (hash: string | undefined) =>
    hash !== undefined && timingSafeEqual(Buffer.from(hash, 'hex'), Buffer.from(hashOf(token), 'hex'));
  const standing = stateAt(scim, now);
  if (standing === CredentialState.ROTATING) return is(current) || is(previous);
  return standing === CredentialState.LIVE && is(current);
}
