import type { Clock } from '../base/clock.ts';
import { ApiError, Code } from '../base/errors.ts';
import type { Incoming } from './call.ts';

/** Answers with `work`, or gives up when the caller's deadline or the server's own limit has passed or the caller is gone. */
export function withDeadline<T>(
  work: Promise<T>,
  { deadline, signal }: Pick<Incoming, 'deadline' | 'signal'>,
  limitMs: number,
  clock: Clock,
): Promise<T> {
  const remaining = deadline === undefined ? limitMs : Math.min(limitMs, deadline - clock());
  return new Promise<T>((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', cancelled);
    };
    const cancelled = () => reject(new ApiError(Code.CANCELLED, 'Cancelled: the client went away'));
    const timer = setTimeout(
      () => reject(new ApiError(Code.DEADLINE_EXCEEDED, 'Deadline exceeded: the answer took too long; try again')),
      Math.max(0, remaining),
    );
    if (signal.aborted) cancelled();
    else signal.addEventListener('abort', cancelled, { once: true });
    work.then(resolve, reject).finally(end);
  });
}
