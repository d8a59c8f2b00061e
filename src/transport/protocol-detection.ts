import type { Socket } from 'node:net';

/** What every HTTP/2 client sends first: RFC 9113 section 3.4. */
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

export type Protocol = 'h2' | 'http/1.1';

/**
 * Tells the protocol by the first bytes of a connection and puts them back, so that its server reads from the start.
 * A client that does not let us decide within `timeoutMs` is cut off.
 */
export function sniff(socket: Socket, timeoutMs: number, decide: (protocol: Protocol) => void): void {
  let seen: Buffer = Buffer.alloc(0);
  const giveUp = () => socket.destroy();
  const timer = setTimeout(giveUp, timeoutMs);

  const look = () => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    const matching = startsAlike(seen, PREFACE);
    if (matching && seen.length < PREFACE.length) return;
    forget();
    socket.unshift(seen);
    decide(matching ? 'h2' : 'http/1.1');
  };
  const forget = () => {
    clearTimeout(timer);
    socket.off('readable', look).off('end', giveUp).off('close', forget);
  };
  socket.on('readable', look).on('end', giveUp).on('close', forget);
}

/** Whether the shorter one is how the longer one begins. */
function startsAlike(a: Buffer, b: Buffer): boolean {
  const length = Math.min(a.length, b.length);
  return a.compare(b, 0, length, 0, length) === 0;
}
