import { createLru } from '../base/lru.ts';
import { ACCESS_VERSION } from '../resource/write.ts';
import { getSetting } from '../store/settings.ts';
import type { Reader } from '../store/store.ts';
import type { Grant } from './caller.ts';
import { grantsOf } from './grants.ts';

/** Identities whose grants are kept; the one unused for longest goes first. */
const MAX_KNOWN = 10_000;

export interface Access {
  /** What the bindings of an identity give it, never older than the last change of access that anybody acknowledged. */
  grants(identity: string): Promise<readonly Grant[]>;
}

/**
 * Keeps grants between requests. Each change of a binding, role or identity commits with a new access version, and
 * every request reads the version first: one key look-up, on any server of the database, and what was revoked is gone.
 */
export function createAccess(db: Reader): Access {
  let version: string | undefined;
  let known = createLru<string, Promise<readonly Grant[]>>(MAX_KNOWN);

  return {
    async grants(identity) {
      const current = await getSetting(db, ACCESS_VERSION);
      if (current !== version) {
        version = current;
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
