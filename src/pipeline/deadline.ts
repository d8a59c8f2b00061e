import type { Clock } from '../base/clock.ts';
import { ApiError, Code } from '../base/errors.ts';
import type { IncomingCall } from './call.ts';

const PATIENCE_MS = 5;

type Watched = Pick<IncomingCall, 'deadline' | 'signal'>;

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
  const remaining = deadline === undefined ? limitMs : Math.min(limitMs, deadline - clock());
  const timer = setTimeout(() => giveUp(tooLate()), Math.max(0, remaining));
  let signal: AbortSignal | undefined;
  const cancel = () => giveUp(cancelled());
  // A signal costs more than the rest of the watch, and most answers from a database over a socket come within a moment.
  const listening = setTimeout(() => {
    signal = incoming.signal();
    if (signal.aborted) cancel();
    else signal.addEventListener('abort', cancel, { once: true });
  }, PATIENCE_MS);
  return () => {
    clearTimeout(timer);
    clearTimeout(listening);
    signal?.removeEventListener('abort', cancel);
  };
}

/** Gives up now if nobody waits for the answer any more: for work that never lets the watch begin. */
export function throwIfAbandoned({ deadline, signal }: Watched, clock: Clock): void {
  if (signal().aborted) throw cancelled();
  if (deadline !== undefined && clock() >= deadline) throw tooLate();
}

const cancelled = () => new ApiError(Code.CANCELLED, 'Cancelled: the client went away');
const tooLate = () => new ApiError(Code.DEADLINE_EXCEEDED, 'Deadline exceeded: the answer took too long; try again');
