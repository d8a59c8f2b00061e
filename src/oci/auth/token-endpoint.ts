import type { CapabilitySet } from '../../contract/capabilities.ts';
import type { Identity } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { identities } from '../../domains/iam/identities/identities.ts';
import { isRepoName } from '../../domains/registry/repos/names.ts';
import { resolveRepo } from '../../domains/registry/repos/resolve-repo.ts';
import { proofOf, type Standing } from '../../identity/login/login-validity.ts';
import type { Actor, OwnToken, Tokens } from '../../identity/tokens/access-tokens.ts';
import type { Caller } from '../../resource/caller.ts';
import { find } from '../../resource/read.ts';
import type { Reader } from '../../store/store.ts';
import { OciError } from '../errors.ts';
import { type Answer, type Call, json } from '../http/call.ts';
import { serviceOf } from './challenge.ts';
import { REGISTRY_TOKEN } from './credentials.ts';
import { capabilitiesFor, formatScope, parseScope, type Scope } from './scope.ts';

export interface TokenEndpointOptions {
  readonly db: Reader;
  readonly tokens: Tokens;
  readonly publicUrl: () => string;
}

const LIFETIME_MS = 5 * 60_000;
/** A push with mounts names a few; a token stays short enough for a header. */
const MAX_SCOPES = 10;

/** A login as its token must remember it. */
type Login = Standing & { readonly act?: Actor | undefined };

/** Trades any good token for one that is good for five minutes, and for nothing but the repositories that were named. */
export function createTokenEndpoint({ db, tokens, publicUrl }: TokenEndpointOptions) {
  async function issue({ credential: { caller, token: presented }, query, now }: Call): Promise<Answer> {
    const asked = scopesIn(query);
    const capabilities = capabilitiesFor(asked.flatMap(({ actions }) => actions));
    const own = await tokens.verify(presented);
    if (own?.audiences.includes(REGISTRY_TOKEN))
      throw new OciError('UNAUTHORIZED', 'a registry token cannot be renewed');
    const { token, expires } = await tokens.mint(
      {
        ...(own ? loginIn(own) : await loginOf(caller, now)),
        audiences: [serviceOf(publicUrl()), REGISTRY_TOKEN, ...asked.map(formatScope)],
        scopes: await placesOf(caller, asked, capabilities),
        capabilities: capabilities & (own?.capabilities ?? capabilities),
      },
      LIFETIME_MS,
    );
    return json(
      200,
      {
        token,
        access_token: token,
        token_type: 'Bearer',
        expires_in: Math.floor((expires - now) / 1000),
        issued_at: new Date(now).toISOString(),
        scope: asked.map(formatScope).join(' '),
      },
      { 'cache-control': 'no-store' },
    );
  }

  /** Where the token shall be good. A place at which the caller may do none of it stays out, so that nobody learns of it. */
  async function placesOf(caller: Caller, asked: readonly Scope[], capabilities: CapabilitySet): Promise<string[]> {
    const places = new Set<string>();
    for (const { name } of asked) {
      // A repo that is not there yet will be in this group.
      const { repo, group } = await resolveRepo(db, name.split('/'));
      const at = repo ?? group;
      if (at !== undefined && caller.lacks(capabilities, at) !== capabilities) places.add(at);
    }
    return [...places];
  }

  async function loginOf({ uid, actor }: Caller, now: number): Promise<Login> {
    const stored = await find(db, identities, uid);
    if (!stored) throw new OciError('UNAUTHORIZED', 'the identity of this token was deleted');
    const proof = proofOf(stored.message as Identity);
    return { identity: uid, authenticated: now, proof, act: actor?.act as Actor | undefined };
  }

  return { issue };
}

const loginIn = ({ identity, authenticated, proof, provider, act }: OwnToken): Login => ({
  identity,
  authenticated,
  proof,
  provider,
  act,
});

/** Several come as several parameters, or as one with spaces. What is no name of a repository gives nothing. */
function scopesIn(parameters: URLSearchParams): readonly Scope[] {
  const texts = parameters.getAll('scope').flatMap((text) => text.split(' '));
  const scopes = texts.flatMap((text) => parseScope(text) ?? []);
  if (scopes.length > MAX_SCOPES)
    throw new OciError('UNSUPPORTED', `ask for at most ${MAX_SCOPES} scopes`, { status: 400 });
  return scopes.filter(({ name }) => name.split('/').every(isRepoName));
}
