/** Goes on with a value, at once if it is there already: a promise would cost a turn of the queue and memory. */
export const whenKnown = <T, U>(value: T | Promise<T>, next: (value: T) => U | Promise<U>): U | Promise<U> =>
  value instanceof Promise ? value.then(next) : next(value);
