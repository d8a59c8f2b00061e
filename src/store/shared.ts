import type { Maybe } from './store.ts';

/**
 * The same read for all who ask at the same time. Who asks while one is under way gets the next, which begins after they
 * asked: so nobody gets an answer older than their question, and there are never more than two, however many ask.
 */
export function shared<T>(read: () => Maybe<T>): () => Maybe<T> {
  let running: Promise<T> | undefined;
  let next: Promise<T> | undefined;

  function begin(): Maybe<T> {
    const result = read();
    if (!(result instanceof Promise)) return result;
    const own = result.finally(() => {
      if (running === own) running = undefined;
    });
    running = own;
    return own;
  }
  async function beginAfter(before: Promise<T>): Promise<T> {
    await before.catch(() => {});
    next = undefined;
    return begin();
  }

  return () => {
    if (running === undefined) return begin();
    next ??= beginAfter(running);
    return next;
  };
}
