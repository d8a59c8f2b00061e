import type { Clock } from '../../base/clock.ts';
import { createLru } from '../../base/lru.ts';
import type { MaybePromise } from '../../base/maybe-promise.ts';
import { ACCESS_VERSION } from '../../resource/access-version.ts';
import type { Caller } from '../../resource/caller.ts';
import { getSetting } from '../../store/settings.ts';
import type { Reader } from '../../store/store.ts';
import { OciError } from '../errors.ts';
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
  readonly db: Reader;
  readonly clock: Clock;
  /** Throws UNAUTHENTICATED. */
  readonly authenticate: (authorization: string) => MaybePromise<Caller>;
}

export type ReadCredential = (authorization: string | undefined) => Promise<Credential>;

interface Known {
  readonly credential: Credential;
  /** The access version that this is known under. */
  readonly version: string | undefined;
  readonly until: number;
}

const MAX_KNOWN = 2_000;
/** What ends by itself, such as an identity with an end date, may go on for so long. */
const KNOWN_FOR_MS = 5_000;

/**
 * Takes tokens of ours and of third parties, as a bearer or as a Basic password with any user name. A client that pulls
 * sends the same token with every request, so what it is worth is remembered, as long as nothing about access changes:
 * one key look-up, and whatever was revoked is gone for the very next request.
 */
export function createCredentials({ db, clock, authenticate }: CredentialsOptions): ReadCredential {
  const known = createLru<string, Known>(MAX_KNOWN);

  return async (authorization) => {
    const token = tokenIn(authorization);
    const now = clock();
    // Read before anything else about access, so that it can only be older than what is remembered under it.
    const version = await getSetting(db, ACCESS_VERSION);
    const found = known.get(token);
    if (found && found.version === version && now < found.until) return found.credential;
    const caller = await authenticate(`Bearer ${token}`);
    const { aud, exp } = claimsIn(token);
    const credential = { caller, token, isMeantFor: purposeOf(aud) };
    known.set(token, { credential, version, until: Math.min(now + KNOWN_FOR_MS, exp * 1000) });
    return credential;
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

/** What a token that has proven good says; one without an end is not remembered. */
function claimsIn(token: string): { readonly aud: readonly string[]; readonly exp: number } {
  const [, payload = ''] = token.split('.');
  const { aud = [], exp = 0 } = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'));
  return { aud: [aud].flat().map(String), exp: Number(exp) };
}

function purposeOf(audiences: readonly string[]): Credential['isMeantFor'] {
  if (!audiences.includes(REGISTRY_TOKEN)) return () => true;
  const scopes: readonly Scope[] = audiences.flatMap((audience) => parseScope(audience) ?? []);
  return (name, action) => scopes.some((scope) => scope.name === name && scope.actions.includes(action));
}
