import type { Store } from './store.ts';

/** Tells a subscriber about every commit of a store. */
export interface CommitSignal {
  notify(): void;
  subscribe(onCommit: () => void): void;
}

export function createCommitSignal(): CommitSignal {
  let notify = (): void => {};
  return {
    notify: () => notify(),
    subscribe(onCommit) {
      notify = onCommit;
    },
  };
}

/** Returns the same store, which notifies `commits` after every commit. */
export const withCommitSignal = (store: Store, commits: CommitSignal): Store => ({
  ...store,
  async write(work, options) {
    const result = await store.write(work, options);
    commits.notify();
    return result;
  },
});
