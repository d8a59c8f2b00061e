import type { Clock } from '../base/clock.ts';
import { ApiError, Code } from '../base/errors.ts';
import type { IncomingCall } from './call.ts';

/** How long a call runs before the client's disconnect is observed. */
const SIGNAL_DELAY_MS = 5;

type Deadline = Pick<IncomingCall, 'deadline' | 'signal'>;

/** Decides whether a call is abandoned or its transaction commits. Each excludes the other. */
export interface CommitDecision {
  /** Called when the transaction starts, and when it starts again after a conflict. Throws if the call was abandoned. */
  start(): void;
  /** Called when the work of the transaction is done. Throws if the call was abandoned, and prevents it otherwise. */
  commit(): void;
  /** Returns whether the call may be answered with an error: not while its transaction commits. */
  abandon(): boolean;
}

export function createCommitDecision(): CommitDecision {
  let isAbandoned = false;
  let isCommitting = false;
  const throwIfAbandoned = (): void => {
    if (isAbandoned) throw tooLate();
  };
  return {
    start() {
      throwIfAbandoned();
      isCommitting = false;
    },
    commit() {
      throwIfAbandoned();
      isCommitting = true;
    },
    abandon() {
      isAbandoned = true;
      return !isCommitting;
    },
  };
}

/**
 * Resolves with `work`. Rejects when the deadline or the server's limit has passed, or when the client disconnects. With
 * a `decision`, work that is rejected here does not commit, and work that commits is awaited.
 */
export function withDeadline<T>(
  work: Promise<T>,
  incoming: Deadline,
  limitMs: number,
  clock: Clock,
  decision?: CommitDecision,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let stopWatching = (): void => {};
    // Most work completes within this turn of the event loop. Timers and disconnects cannot fire earlier anyway.
    const start = setImmediate(() => {
      stopWatching = watch(incoming, limitMs, clock, (error) => {
        if (decision?.abandon() ?? true) reject(error);
      });
    });
    const end = (): void => {
      clearImmediate(start);
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

function watch(incoming: Deadline, limitMs: number, clock: Clock, giveUp: (error: ApiError) => void) {
  const { deadline } = incoming;
  const remaining = deadline === undefined ? limitMs : Math.min(limitMs, deadline - clock());
  const timer = setTimeout(() => giveUp(tooLate()), Math.max(0, remaining));
  let signal: AbortSignal | undefined;
  const cancel = () => giveUp(cancelled());
  // Creating the signal costs more than the rest of the watch, and most database calls end within a few milliseconds.
  const listening = setTimeout(() => {
    signal = incoming.signal();
    if (signal.aborted) cancel();
    else signal.addEventListener('abort', cancel, { once: true });
  }, SIGNAL_DELAY_MS);
  return () => {
    clearTimeout(timer);
    clearTimeout(listening);
    signal?.removeEventListener('abort', cancel);
  };
}

/** Throws if the client has disconnected or the deadline has passed: for a loop in which the watch would never start. */
export function throwIfAbandoned({ deadline, signal }: Deadline, clock: Clock): void {
  if (signal().aborted) throw cancelled();
  if (deadline !== undefined && clock() >= deadline) throw tooLate();
}

const cancelled = () => new ApiError(Code.CANCELLED, 'Cancelled: the client disconnected');
const tooLate = () => new ApiError(Code.DEADLINE_EXCEEDED, 'Deadline exceeded: the request took too long; try again');
