/** Returns the same promise. If it rejects before it is awaited, that is not reported as an unhandled rejection. */
export function deferRejection<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
