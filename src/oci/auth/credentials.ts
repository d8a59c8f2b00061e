import { isRegistryToken } from '../../identity/tokens/audience.ts';
import type { Authenticate } from '../../pipeline/pipeline.ts';
import type { Caller } from '../../resource/caller.ts';
import { OciError } from '../errors.ts';
import type { OciCall } from '../http/call.ts';
import { parseScope, type Scope } from './scope.ts';

/** The caller of a request and the token that it sent. */
export interface Credential extends TokenRestriction {
  readonly caller: Caller;
  readonly token: string;
}

type TokenRestriction = Pick<OciCall, 'tokenAllows' | 'tokenRepositories'>;

export type ReadCredential = (authorization: string | undefined, address: string) => Promise<Credential>;

/** Accepts a token as a bearer token, or as a Basic password with any user name. */
export function createCredentialReader(authenticate: Authenticate): ReadCredential {
  // The authenticator returns the same caller for the same token, for as long as it has the caller cached.
  const restrictions = new WeakMap<Caller, TokenRestriction>();
  return async (authorization, address) => {
    const token = tokenIn(authorization);
    const caller = await authenticate(`Bearer ${token}`, address);
    const restriction = restrictions.get(caller) ?? restrictionBy(audiencesOf(token));
    restrictions.set(caller, restriction);
    return { ...restriction, caller, token };
  };
}

function tokenIn(authorization = ''): string {
  const [, scheme = '', value = ''] = /^\s*(?:(bearer|basic)\s+)?(\S+)\s*$/i.exec(authorization) ?? [];
  const token = scheme.toLowerCase() === 'basic' ? passwordIn(value) : value;
  if (token === '') {
    throw new OciError('UNAUTHORIZED', 'send a token as a bearer token, or as a password with any user name');
  }
  return token;
}

/** RFC 7617: the password is everything after the first colon. */
function passwordIn(encoded: string): string {
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  return colon < 0 ? '' : text.slice(colon + 1).trim();
}

/** The `aud` claim of a token that has been verified. */
function audiencesOf(token: string): readonly string[] {
  const [, payload = ''] = token.split('.');
  const { aud = [] } = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'));
  return [aud].flat().map(String);
}

function restrictionBy(audiences: readonly string[]): TokenRestriction {
  if (!isRegistryToken(audiences)) return { tokenAllows: () => true, tokenRepositories: undefined };
  const scopes: readonly Scope[] = audiences.flatMap((audience) => parseScope(audience) ?? []);
  const tokenAllows: TokenRestriction['tokenAllows'] = (name, action) =>
    scopes.some((scope) => scope.name === name && scope.actions.includes(action));
  return { tokenAllows, tokenRepositories: scopes.map(({ name }) => name) };
}
