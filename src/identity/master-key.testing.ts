import { randomBytes } from 'node:crypto';
import { open, seal, sealingKey } from '../base/secretbox.ts';
import type { MasterKeys } from './master-key.ts';

/** Master keys of which only one exists, outside of any database. */
export function fixedMasterKeys(bytes: Uint8Array = randomBytes(32)): MasterKeys {
  const key = sealingKey(bytes);
  return {
    seal: async (_tx, secret, context) => seal(key, secret, context),
    open: async (sealed, context) => open(key, sealed, context),
  };
}
