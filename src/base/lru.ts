/** A map of bounded size. When it is full, it evicts an entry that was not used recently. */
export interface Lru<K, V> {
  get(key: K): V | undefined;
  set(key: K, value: V): void;
  delete(key: K): void;
}

interface Entry<K, V> {
  readonly key: K;
  value: V;
  older: Entry<K, V> | undefined;
  younger: Entry<K, V> | undefined;
  /** The value of `moves` when the entry was last moved to the young end of the list. */
  moved: number;
}

/**
 * The entries are a linked list from the oldest to the youngest. The insertion order of a Map would also do. But
 * deleting and inserting an entry again makes the Map allocate in V8's old space, which is seldom collected: with one
 * use per request that was most of the garbage there.
 *
 * A used entry is moved to the young end only when a quarter of the capacity was moved after it. So an entry that is
 * used all the time is seldom moved, and still stays in the younger part of the list.
 */
export function createLru<K, V extends NonNullable<unknown>>(capacity: number): Lru<K, V> {
  const entries = new Map<K, Entry<K, V>>();
  let oldest: Entry<K, V> | undefined;
  let youngest: Entry<K, V> | undefined;

  const slack = Math.floor(capacity / 4);
  let moves = 0;

  const unlink = (entry: Entry<K, V>): void => {
    const { older, younger } = entry;
    if (older) older.younger = younger;
    else oldest = younger;
    if (younger) younger.older = older;
    else youngest = older;
  };
  const append = (entry: Entry<K, V>): void => {
    entry.older = youngest;
    entry.younger = undefined;
    entry.moved = ++moves;
    if (youngest) youngest.younger = entry;
    else oldest = entry;
    youngest = entry;
  };
  const use = (entry: Entry<K, V>): void => {
    if (moves - entry.moved <= slack) return;
    unlink(entry);
    append(entry);
  };
  const remove = (entry: Entry<K, V> | undefined): void => {
    if (!entry) return;
    unlink(entry);
    entries.delete(entry.key);
  };

  return {
    get(key) {
      const entry = entries.get(key);
      if (entry) use(entry);
      return entry?.value;
    },
    set(key, value) {
      const existing = entries.get(key);
      if (existing) {
        existing.value = value;
        use(existing);
        return;
      }
      const entry = { key, value, older: undefined, younger: undefined, moved: 0 };
      entries.set(key, entry);
      append(entry);
      if (entries.size > capacity) remove(oldest);
    },
    delete: (key) => remove(entries.get(key)),
  };
}
