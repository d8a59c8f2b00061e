import type { IncomingMessage } from 'node:http';

/** The clock that runs while the body of a request arrives. */
export interface Arrival {
  /** Stops it: whoever reads the body from here on sees to it that the body makes progress. */
  suspend(): void;
  /** Starts it anew. */
  resume(): void;
}

/** Calls `late` when the body of a request is not there after `limitMs`. */
export function watchArrival(req: IncomingMessage, limitMs: number, late: () => void): Arrival {
  const { 'content-length': length = '0', 'transfer-encoding': pieces } = req.headers;
  if (pieces === undefined && Number(length) === 0) return NOTHING_TO_COME;
  const { socket } = req;
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  const suspend = (): void => clearTimeout(timer);
  const resume = (): void => {
    suspend();
    if (!isOver) timer = setTimeout(late, limitMs);
  };
  const end = (): void => {
    isOver = true;
    suspend();
    socket.off('close', end);
  };
  req.once('end', end).once('close', end);
  // A request that was answered before it was read to its end is not told that its connection closed.
  socket.once('close', end);
  resume();
  return { suspend, resume };
}

const NOTHING_TO_COME: Arrival = { suspend() {}, resume() {} };
