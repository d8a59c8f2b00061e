import type { Quotas } from '../limits/quotas.ts';
import type { Store } from './store.ts';

/** Returns the same store, whose transactions check `quotas`. */
export const withQuotas = (store: Store, quotas: Quotas): Store => ({
  ...store,
  // Each write has a transaction object of its own.
  write: (work, options) => store.write((tx) => work(Object.assign(tx, { quotas })), options),
});
