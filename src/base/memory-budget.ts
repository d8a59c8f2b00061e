/** Counts memory against a limit. */
export interface MemoryBudget {
  /** Whether the memory in use exceeds the limit. */
  readonly isExceeded: boolean;
  charge(bytes: number): void;
  /** Returns bytes that were charged before. */
  release(bytes: number): void;
}

export function createMemoryBudget(limitBytes: number): MemoryBudget {
  let used = 0;
  return {
    get isExceeded() {
      return used > limitBytes;
    },
    charge(bytes) {
      used += bytes;
    },
    release(bytes) {
      used -= bytes;
    },
  };
}
