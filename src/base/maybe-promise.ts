/**
 * A value, or a promise of it. SQLite answers synchronously and PostgreSQL does not; `await` accepts both.
 */
export type MaybePromise<T> = T | Promise<T>;

/**
 * Calls `next` with a value: at once if it is already there, after the promise otherwise. Unlike `await`, it allocates no
 * promise and waits for no microtask when there is nothing to wait for.
 */
export const chain = <T, U>(value: MaybePromise<T>, next: (value: T) => MaybePromise<U>): MaybePromise<U> =>
  value instanceof Promise ? value.then(next) : next(value);
