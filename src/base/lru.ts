/** A map of bounded size: when it is full, what was not used for long makes room. */
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
  /** The use, by their number, that moved it to the end of the chain. */
  moved: number;
}

/**
 * The entries are a chain from the oldest to the youngest. The order of a Map would do, but putting an entry in again makes
 * it allocate, in the space that V8 seldom collects: with one such use per request most of the garbage there.
 *
 * An entry is moved only when a quarter of the capacity was moved since: whatever is used all the time then stays where it is,
 * and in the younger part of the chain anyway.
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
      const known = entries.get(key);
      if (known) {
        known.value = value;
        use(known);
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
