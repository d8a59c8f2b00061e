import type { Store } from './store.ts';

/** The same store, which says after every commit that something was written. */
export const withCommitHook = (store: Store, announce: () => void): Store => ({
  ...store,
  async write(work, how) {
    const result = await store.write(work, how);
    announce();
    return result;
  },
});
