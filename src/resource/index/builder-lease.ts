import { randomUUID } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { getSetting, putSetting, putSettingIfAbsent } from '../../store/settings.ts';
import type { Store } from '../../store/store.ts';

const KEY = 'listing-index.builder';
const LEASE_MS = 15_000;
const RENEW_MS = 5_000;

interface LeaseState {
  readonly owner: string;
  readonly until: number;
}

/** Lets one server of a database build listing indexes at a time. If it dies, another one takes over. */
export interface BuilderLease {
  /** Takes the lease or renews it. Returns false if another server has it. */
  take(): Promise<boolean>;
  release(): Promise<void>;
}

export function createBuilderLease(store: Store, clock: Clock): BuilderLease {
  const owner = randomUUID();
  let renewed = -Infinity;

  const put = (until: number): Promise<boolean> =>
    store.write(async (tx) => {
      await putSettingIfAbsent(tx, KEY, JSON.stringify({ owner: '', until: 0 }));
      const { owner: holder, until: end } = JSON.parse((await getSetting(tx.forUpdate, KEY)) ?? '{}') as LeaseState;
      if (holder !== owner && end > clock()) return false;
      await putSetting(tx, KEY, JSON.stringify({ owner, until }));
      return true;
    });

  return {
    async take() {
      if (clock() - renewed < RENEW_MS) return true;
      const isTaken = await put(clock() + LEASE_MS);
      renewed = isTaken ? clock() : -Infinity;
      return isTaken;
    },
    async release() {
      if (renewed > -Infinity) await put(0);
      renewed = -Infinity;
    },
  };
}
