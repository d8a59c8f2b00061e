/** A map of bounded size: when it is full, what was not used for longest makes room. */
export interface Lru<K, V> {
  get(key: K): V | undefined;
  set(key: K, value: V): void;
  delete(key: K): void;
}

export function createLru<K, V extends NonNullable<unknown>>(capacity: number): Lru<K, V> {
  // A Map iterates in the order of insertion, so putting an entry in again makes it the youngest.
  const entries = new Map<K, V>();
  return {
    get(key) {
      const value = entries.get(key);
      if (value === undefined) return undefined;
      entries.delete(key);
      entries.set(key, value);
      return value;
    },
    set(key, value) {
      entries.delete(key);
      entries.set(key, value);
      if (entries.size <= capacity) return;
      for (const oldest of entries.keys()) {
        entries.delete(oldest);
        break;
      }
    },
    delete(key) {
      entries.delete(key);
    },
  };
}
