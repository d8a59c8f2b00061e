import type { Store } from './store.ts';

/** Returns the same store, which calls `onCommit` after every commit. */
export const withCommitHook = (store: Store, onCommit: () => void): Store => ({
  ...store,
  async write(work, options) {
    const result = await store.write(work, options);
    onCommit();
    return result;
  },
});
