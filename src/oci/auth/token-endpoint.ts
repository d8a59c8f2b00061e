import type { Uid } from '../../base/uid.ts';
import type { CapabilitySet } from '../../contract/capabilities.ts';
import { identities } from '../../domains/iam/identities/identities.ts';
import { isRepoName } from '../../domains/registry/repos/name-rules.ts';
import { resolveRepo } from '../../domains/registry/repos/resolve-repo.ts';
import { credentialFingerprintOf, type LoginRecord } from '../../identity/login/login-validity.ts';
import type { AccessTokens, Actor, VerifiedAccessToken } from '../../identity/tokens/access-tokens.ts';
import { isRegistryToken, REGISTRY_TOKEN } from '../../identity/tokens/audience.ts';
import { find } from '../../resource/read.ts';
import { OciError } from '../errors.ts';
import { json, type OciCall, type OciResponse } from '../http/call.ts';
import { serviceOf } from './challenge.ts';
import { capabilitiesFor, formatScope, parseScope, type Scope } from './scope.ts';

export interface TokenEndpointOptions {
  readonly accessTokens: AccessTokens;
  readonly publicUrl: string;
}

const LIFETIME_MS = 5 * 60_000;
/** A push with mounts needs a few scopes. The token must remain short enough for a header. */
const MAX_SCOPES = 10;

/** The login that a token descends from. */
type Login = LoginRecord & { readonly act?: Actor | undefined };

/** Exchanges any valid token for a registry token: valid for five minutes, and only for the named repositories. */
export function createTokenEndpoint({ accessTokens, publicUrl }: TokenEndpointOptions) {
  return async (call: OciCall): Promise<OciResponse> => {
    const scopes = scopesIn(call.query);
    const capabilities = capabilitiesFor(scopes.flatMap(({ actions }) => actions));
    const presented = await accessTokens.verify(call.token);
    if (presented && isRegistryToken(presented.audiences)) {
      throw new OciError('UNAUTHORIZED', 'a registry token cannot be renewed; log in again');
    }
    const { token, expires } = await accessTokens.issue(
      {
        ...(presented ? loginOf(presented) : await newLogin(call)),
        audiences: [serviceOf(publicUrl), REGISTRY_TOKEN, ...scopes.map(formatScope)],
        scopes: await uidsOf(call, scopes, capabilities),
        capabilities: capabilities & (presented?.capabilities ?? capabilities),
      },
      LIFETIME_MS,
    );
    return json(
      200,
      {
        token,
        access_token: token,
        token_type: 'Bearer',
        expires_in: Math.floor((expires - call.now) / 1000),
        issued_at: new Date(call.now).toISOString(),
        scope: scopes.map(formatScope).join(' '),
      },
      { 'cache-control': 'no-store' },
    );
  };
}

/** The uids that the token is restricted to. One where the caller has none of the capabilities is omitted. */
async function uidsOf({ db, caller }: OciCall, scopes: readonly Scope[], capabilities: CapabilitySet): Promise<Uid[]> {
  const uids = new Set<Uid>();
  for (const { name } of scopes) {
    // A repo that does not exist will be created in this group.
    const { repo, group } = await resolveRepo(db, name.split('/'));
    const at = repo ?? group;
    if (at !== undefined && caller.lacks(capabilities, at) !== capabilities) uids.add(at);
  }
  return [...uids];
}

/** The login record for a caller with a third-party token. */
async function newLogin({ db, caller: { uid, actor }, now }: OciCall): Promise<Login> {
  const stored = await find(db, identities, uid);
  if (!stored) throw new OciError('UNAUTHORIZED', 'the identity of this token has been deleted');
  return {
    identity: uid,
    authenticatedAt: now,
    credentialFingerprint: credentialFingerprintOf(stored),
    act: actor?.act as Actor | undefined,
  };
}

const loginOf = (accessToken: VerifiedAccessToken): Login => {
  const { identity, authenticatedAt, credentialFingerprint, session, provider, act } = accessToken;
  return { identity, authenticatedAt, credentialFingerprint, session, provider, act };
};

/** The scopes of a request: several parameters, or one parameter with spaces. Scopes without a valid name are ignored. */
function scopesIn(parameters: URLSearchParams): readonly Scope[] {
  const texts = parameters.getAll('scope').flatMap((text) => text.split(' '));
  const scopes = texts.flatMap((text) => parseScope(text) ?? []);
  if (scopes.length > MAX_SCOPES) {
    throw new OciError('UNSUPPORTED', `request at most ${MAX_SCOPES} scopes`, { status: 400 });
  }
  return scopes.filter(({ name }) => name.split('/').every(isRepoName));
}
