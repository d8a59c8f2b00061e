import type { Clock } from '../base/clock.ts';
import { ApiError, Code } from '../base/errors.ts';
import type { Incoming } from './call.ts';

type Watched = Pick<Incoming, 'deadline' | 'signal'>;

/** Answers with `work`, or gives up when the caller's deadline or the server's own limit has passed or the caller is gone. */
export function withDeadline<T>(work: Promise<T>, incoming: Watched, limitMs: number, clock: Clock): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let stopWatching = (): void => {};
    // Most answers are there before the event loop turns, and until then nothing could be noticed anyway: they need no watch.
    const soon = setImmediate(() => {
      stopWatching = watch(incoming, limitMs, clock, reject);
    });
    const end = (): void => {
      clearImmediate(soon);
      stopWatching();
    };
    work.then(
      (value) => {
        end();
        resolve(value);
      },
      (error) => {
        end();
        reject(error);
      },
    );
  });
}

function watch(incoming: Watched, limitMs: number, clock: Clock, giveUp: (error: ApiError) => void) {
  const { deadline } = incoming;
  const signal = incoming.signal();
  const remaining = deadline === undefined ? limitMs : Math.min(limitMs, deadline - clock());
  const cancelled = () => giveUp(new ApiError(Code.CANCELLED, 'Cancelled: the client went away'));
  const timer = setTimeout(
    () => giveUp(new ApiError(Code.DEADLINE_EXCEEDED, 'Deadline exceeded: the answer took too long; try again')),
    Math.max(0, remaining),
  );
  if (signal.aborted) cancelled();
  else signal.addEventListener('abort', cancelled, { once: true });
  return () => {
    clearTimeout(timer);
    signal.removeEventListener('abort', cancelled);
  };
}
