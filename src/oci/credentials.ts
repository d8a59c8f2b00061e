import { createLru } from '../base/lru.ts';
import type { Caller } from '../resource/context.ts';
import { OciError } from './errors.ts';
import { type Action, parseScope, type Scope } from './scope.ts';

/** In the audiences of every registry token, also of one for no repository at all, as `docker login` gets it. */
export const REGISTRY_TOKEN = 'registry-token';

/** Who sent a request, and what for. */
export interface Credential {
  readonly caller: Caller;
  /** As it was sent, without a scheme. */
  readonly token: string;
  /** Whether this is what a registry token was asked for. Any other token is good for all that its caller may do. */
  isMeantFor(name: string, action: Action): boolean;
}

export interface CredentialsOptions {
  /** Throws UNAUTHENTICATED. */
  readonly authenticate: (authorization: string) => Promise<Caller>;
}

export type ReadCredential = (authorization: string | undefined) => Promise<Credential>;

/** Taking a token apart costs more than all else about a small request. */
const MAX_KNOWN = 10_000;

/** Takes tokens of ours and of third parties, as a bearer or as a Basic password with any user name. */
export function createCredentials({ authenticate }: CredentialsOptions): ReadCredential {
  const known = createLru<string, { readonly scopes: readonly Scope[] | undefined }>(MAX_KNOWN);

  /** The scopes of a registry token; undefined for any other. Only read once the token has proven good. */
  function scopesOf(token: string): readonly Scope[] | undefined {
    const found = known.get(token) ?? { scopes: registryScopes(token) };
    known.set(token, found);
    return found.scopes;
  }

  return async (authorization) => {
    const token = tokenIn(authorization);
    const caller = await authenticate(`Bearer ${token}`);
    const isMeantFor = (name: string, action: Action): boolean => {
      const scopes = scopesOf(token);
      return scopes === undefined || scopes.some((scope) => scope.name === name && scope.actions.includes(action));
    };
    return { caller, token, isMeantFor };
  };
}

function tokenIn(authorization = ''): string {
  const [, scheme = '', value = ''] = /^\s*(?:(bearer|basic)\s+)?(\S+)\s*$/i.exec(authorization) ?? [];
  const token = scheme.toLowerCase() === 'basic' ? passwordIn(value) : value;
  if (token === '') throw new OciError('UNAUTHORIZED', 'send a token as a bearer, or as a password with any user name');
  return token;
}

/** RFC 7617: the password is all after the first colon. */
function passwordIn(encoded: string): string {
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  return colon < 0 ? '' : text.slice(colon + 1).trim();
}

function registryScopes(token: string): readonly Scope[] | undefined {
  const [, payload = ''] = token.split('.');
  let audiences: unknown;
  try {
    ({ aud: audiences } = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')));
  } catch {
    return undefined;
  }
  if (!Array.isArray(audiences) || !audiences.includes(REGISTRY_TOKEN)) return undefined;
  return audiences.flatMap((audience) => parseScope(String(audience)) ?? []);
}
