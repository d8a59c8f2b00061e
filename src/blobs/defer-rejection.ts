/** Work that goes on beside other work and is awaited after it: should it fail before that, nobody is surprised. */
export function metLater<T>(work: Promise<T>): Promise<T> {
  work.catch(() => {});
  return work;
}
