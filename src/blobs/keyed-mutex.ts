/** Runs work with the same key one after the other, and work with different keys concurrently. */
export interface KeyedMutex {
  run<T>(key: string, work: () => Promise<T>): Promise<T>;
}

export function createKeyedMutex(): KeyedMutex {
  const lastByKey = new Map<string, Promise<unknown>>();
  return {
    async run(key, work) {
      const previous = lastByKey.get(key);
      const running = previous === undefined ? work() : previous.then(work, work);
      lastByKey.set(key, running);
      try {
        return await running;
      } finally {
        if (lastByKey.get(key) === running) lastByKey.delete(key);
      }
    },
  };
}
