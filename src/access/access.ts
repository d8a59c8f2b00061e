import { createLru } from '../base/lru.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import { ACCESS_VERSION } from '../resource/access-version.ts';
import type { Reader } from '../store/store.ts';
import type { Grant } from './caller.ts';
import { grantsOf } from './grants.ts';

/** Identities whose grants are kept; the one unused for longest goes first. */
const MAX_KNOWN = 10_000;

export interface Access {
  /** Differs after every change of who may do what that anybody acknowledged before this was asked. */
  version(): MaybePromise<string | undefined>;
  /** What the bindings of an identity give it, never older than the last change of access that anybody acknowledged. */
  grants(identity: string): Promise<readonly Grant[]>;
}

/**
 * Keeps grants between requests. Each change of a binding, role or identity commits with a new access version, and
 * every request reads the version first: one key look-up, on any server of the database, and what was revoked is gone.
 */
export function createAccess(db: Reader): Access {
  const { rowCache: memory } = db;
  let current: string | undefined;
  let known = createLru<string, Promise<readonly Grant[]>>(MAX_KNOWN);

  /** Whether it is known still to hold is asked for each request, never for several at once. */
  function version(): MaybePromise<string | undefined> {
    memory?.revalidate();
    const known = memory?.get(ACCESS_VERSION, ACCESS_VERSION);
    if (known !== undefined) return known as string;
    const mark = memory?.epoch();
    const row = db.get<{ value: string }>(VERSION, ACCESS_VERSION);
    if (row instanceof Promise) return row.then((found) => found?.value);
    if (row && mark !== undefined) memory?.put(mark, ACCESS_VERSION, ACCESS_VERSION, row.value);
    return row?.value;
  }

  return {
    version,
    async grants(identity) {
      const newest = await version();
      if (newest !== current) {
        current = newest;
        known = createLru(MAX_KNOWN);
      }
      const found = known.get(identity);
      if (found) return found;
      // Read after the version: it can only be newer than the version says.
      const loaded = grantsOf(db, identity);
      const home = known;
      home.set(identity, loaded);
      loaded.catch(() => home.delete(identity));
      return loaded;
    },
  };
}

const VERSION = 'SELECT value FROM setting WHERE key = $1';
