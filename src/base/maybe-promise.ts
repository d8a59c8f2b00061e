/**
 * A value, or a promise of it. SQLite returns results synchronously and PostgreSQL does not; `await` accepts both.
 */
export type MaybePromise<T> = T | Promise<T>;

/**
 * Calls `next` with the value: synchronously for a plain value, after the promise otherwise. Unlike `await`, it
 * allocates no promise and no microtask for a plain value.
 */
export const chain = <T, U>(value: MaybePromise<T>, next: (value: T) => MaybePromise<U>): MaybePromise<U> =>
  value instanceof Promise ? value.then(next) : next(value);
