import { createLru } from '../base/lru.ts';
import { chain, type MaybePromise } from '../base/maybe-promise.ts';
import { ACCESS_VERSION } from '../resource/access-version.ts';
import type { Reader } from '../store/store.ts';
import type { Grant } from './create-caller.ts';
import { grantsOf } from './grants.ts';

const MAX_IDENTITIES = 10_000;

export interface GrantCache {
  /** The current access version. It includes every change of access that was acknowledged before this call. */
  accessVersion(): MaybePromise<string | undefined>;
  /** The grants of an identity by its role bindings, at the current access version or a later one. */
  grants(identity: string): Promise<readonly Grant[]>;
}

/**
 * Caches the grants of identities between requests. Each change of a role binding, role or identity commits with a new
 * access version. Every request reads the version first, by one primary key lookup. So a revoked grant takes effect at
 * once on all servers of the database.
 */
export function createGrantCache(db: Reader): GrantCache {
  const { rowCache } = db;
  let cachedVersion: string | undefined;
  let grantsByIdentity = createLru<string, Promise<readonly Grant[]>>(MAX_IDENTITIES);

  /** Revalidates the row cache for every request: a check that several requests share would be too old for the last. */
  function accessVersion(): MaybePromise<string | undefined> {
    rowCache?.revalidate();
    const cached = rowCache?.get(ACCESS_VERSION, ACCESS_VERSION);
    if (cached !== undefined) return cached as string;
    const epoch = rowCache?.epoch();
    const version = readAccessVersion(db);
    if (version instanceof Promise || version === undefined) return version;
    if (epoch !== undefined) rowCache?.put(epoch, ACCESS_VERSION, ACCESS_VERSION, version);
    return version;
  }

  return {
    accessVersion,
    async grants(identity) {
      const version = await accessVersion();
      if (version !== cachedVersion) {
        cachedVersion = version;
        grantsByIdentity = createLru(MAX_IDENTITIES);
      }
      const cached = grantsByIdentity.get(identity);
      if (cached) return cached;
      // Read after the version, so they are at least as new.
      const loading = grantsOf(db, identity);
      const cache = grantsByIdentity;
      cache.set(identity, loading);
      loading.catch(() => cache.delete(identity));
      return loading;
    },
  };
}

const FIND_VERSION = 'SELECT value FROM setting WHERE key = $1';

/** Reads the access version from the database. */
export const readAccessVersion = (db: Reader): MaybePromise<string | undefined> =>
  chain(db.get<{ value: string }>(FIND_VERSION, ACCESS_VERSION), (row) => row?.value);
