import { getSetting, putSetting } from '../../store/settings.ts';
import type { Reader, Store } from '../../store/store.ts';

const KEY = 'database.check';

/** The result of the last `wharf db check`. */
export interface LastCheck {
  /** When it ended, in milliseconds. */
  readonly at: number;
  readonly resources: number;
  readonly differences: number;
  readonly repaired: number;
}

export const recordCheck = (store: Store, check: LastCheck): Promise<void> =>
  store.write((tx) => putSetting(tx, KEY, JSON.stringify(check)));

export async function findLastCheck(db: Reader): Promise<LastCheck | undefined> {
  const value = await getSetting(db, KEY);
  return value === undefined ? undefined : (JSON.parse(value) as LastCheck);
}
