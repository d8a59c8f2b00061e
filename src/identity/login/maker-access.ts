import { createCaller } from '../../access/create-caller.ts';
import type { GrantCache } from '../../access/grant-cache.ts';
import { narrowGrants } from '../../access/token-scope.ts';
import { createLru } from '../../base/lru.ts';
import { decodeMaker, type MakerAccess } from '../../domains/events/maker.ts';
import { identities } from '../../domains/iam/identities/identities.ts';
import type { Caller } from '../../resource/caller.ts';
import { find } from '../../resource/read.ts';
import type { Reader } from '../../store/store.ts';
import { providerGrants } from '../federation/provider-grants.ts';
import { findActiveIdentity } from './login-validity.ts';

const MAX_CACHED = 10_000;
/** How much the clocks of two servers may differ. */
const CLOCK_TOLERANCE_MS = 60_000;

export interface MakerAccessOptions {
  readonly db: Reader;
  readonly grantCache: GrantCache;
}

/**
 * Returns a function that determines what the maker of a subscription may do now: by its role bindings and, if it logged in
 * through an identity provider, by the mappings of that provider, within the scope of the token that it used. Cached for
 * one access version, which changes with all of these.
 */
export function createMakerAccess({ db, grantCache }: MakerAccessOptions): MakerAccess {
  let cachedVersion: string | undefined;
  let callers = createLru<string, Promise<Caller | undefined>>(MAX_CACHED);

  async function load(stored: string): Promise<Caller | undefined> {
    const maker = decodeMaker(stored);
    const identity = await find(db, identities, maker.identity);
    // A user who was deleted and registers again gets the same uid, but does not regain earlier subscriptions.
    if (!identity || identity.created > maker.since + CLOCK_TOLERANCE_MS) return undefined;
    const active = await findActiveIdentity(db, identity, maker.provider);
    if (!active) return undefined;
    const grants = [...(await grantCache.grants(maker.identity)), ...(await providerGrants(db, maker.provider))];
    return createCaller(maker.identity, undefined, narrowGrants(active.effective(grants), maker), { login: maker });
  }

  return async (stored) => {
    // Read before the access itself, so that a cached caller is never older than its version.
    const version = await grantCache.accessVersion();
    if (version !== cachedVersion) {
      cachedVersion = version;
      callers = createLru(MAX_CACHED);
    }
    const cached = callers.get(stored);
    if (cached) return cached;
    const cache = callers;
    const loading = load(stored);
    cache.set(stored, loading);
    loading.catch(() => cache.delete(stored));
    return loading;
  };
}
