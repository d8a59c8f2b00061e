import type { IncomingMessage } from 'node:http';
import { bodyLengthOf } from '../base/body-length.ts';

/** The timeout for the arrival of a request body. */
export interface BodyTimeout {
  /** Stops the timer. The reader of the body must then check itself that the body makes progress. */
  suspend(): void;
  /** Starts the timer again, with the full limit. */
  resume(): void;
  /** Starts the timer again, with a smaller limit. */
  shorten(limitMs: number): void;
}

/** Calls `onTimeout` when the body of a request has not arrived completely after `fullLimitMs`. */
export function startBodyTimeout(req: IncomingMessage, fullLimitMs: number, onTimeout: () => void): BodyTimeout {
  if (bodyLengthOf(req) === 0) return NO_BODY;
  const { socket } = req;
  const isOwnConnection = req.httpVersionMajor === 1;
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  let limitMs = fullLimitMs;
  const suspend = (): void => clearTimeout(timer);
  const resume = (): void => {
    suspend();
    if (!isOver) timer = setTimeout(onTimeout, limitMs);
  };
  const end = (): void => {
    isOver = true;
    suspend();
    if (isOwnConnection) socket.off('close', end);
  };
  req.once('end', end).once('close', end);
  // In HTTP/1.1, Node emits no 'close' on a request that was responded to before its body was read to the end.
  if (isOwnConnection) socket.once('close', end);
  resume();
  const shorten = (shorterMs: number): void => {
    limitMs = Math.min(limitMs, shorterMs);
    resume();
  };
  return { suspend, resume, shorten };
}

const NO_BODY: BodyTimeout = { suspend() {}, resume() {}, shorten() {} };
