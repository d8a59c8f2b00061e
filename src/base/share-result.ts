/**
 * Returns a function that calls `produce` at most once in `ageMs` and shares its result. Calls that arrive while it runs
 * wait for the same result. A failure is not kept.
 */
export function shareResult<T>(
  produce: () => Promise<T>,
  ageMs: number,
  now: () => number = () => performance.now(),
): () => Promise<T> {
  let shared: Promise<T> | undefined;
  let expires = 0;
  return () => {
    if (shared !== undefined && now() < expires) return shared;
    const result = produce();
    shared = result;
    expires = Number.POSITIVE_INFINITY;
    result.then(
      () => {
        if (shared === result) expires = now() + ageMs;
      },
      () => {
        if (shared === result) shared = undefined;
      },
    );
    return result;
  };
}
