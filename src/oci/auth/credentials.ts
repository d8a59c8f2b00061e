import type { Authenticate } from '../../pipeline/pipeline.ts';
import type { Caller } from '../../resource/caller.ts';
import { OciError } from '../errors.ts';
import type { OciCall } from '../http/call.ts';
import { parseScope, type Scope } from './scope.ts';

/** An audience of every registry token, also of one without any repository, as `docker login` gets it. */
export const REGISTRY_TOKEN = 'registry-token';

/** The caller of a request and the token that it sent. */
export interface Credential extends Pick<OciCall, 'token' | 'tokenAllows'> {
  readonly caller: Caller;
}

export type ReadCredential = (authorization: string | undefined) => Promise<Credential>;

/** Accepts a token as a bearer token, or as a Basic password with any user name. */
export function createCredentialReader(authenticate: Authenticate): ReadCredential {
  // The authenticator returns the same caller for the same token, for as long as it has the caller cached.
  const credentials = new WeakMap<Caller, Credential>();
  return async (authorization) => {
    const token = tokenIn(authorization);
    const caller = await authenticate(`Bearer ${token}`);
    const known = credentials.get(caller);
    if (known) return known;
    const credential = { caller, token, tokenAllows: allowedActions(audiencesOf(token)) };
    credentials.set(caller, credential);
    return credential;
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

function allowedActions(audiences: readonly string[]): Credential['tokenAllows'] {
  if (!audiences.includes(REGISTRY_TOKEN)) return () => true;
  const scopes: readonly Scope[] = audiences.flatMap((audience) => parseScope(audience) ?? []);
  return (name, action) => scopes.some((scope) => scope.name === name && scope.actions.includes(action));
}
