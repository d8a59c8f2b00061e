import type { Quotas } from '../limits/quotas.ts';
import type { Store } from './store.ts';

/** Returns the same store, whose transactions check `quotas`. */
export const withQuotas = (store: Store, quotas: Quotas): Store => ({
  ...store,
  // An object that inherits from the transaction: a copy would run its getters.
  write: (work, options) => store.write((tx) => work(Object.assign(Object.create(tx), { quotas })), options),
});
