import type { Socket } from 'node:net';

/** The first bytes of every HTTP/2 client: RFC 9113 section 3.4. */
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

/** Node parses all requests of a chunk, even if the connection is paused or closed after the first of them. */
const PART_BYTES = 4 * 1024;

export type Protocol = 'h2' | 'http/1.1';

/**
 * Detects the protocol by the first bytes of a connection. The bytes are pushed back, so that the server of the
 * protocol reads them too. A connection that sends too few bytes within `timeoutMs` is closed.
 */
export function detectProtocol(socket: Socket, timeoutMs: number, onDetected: (protocol: Protocol) => void): void {
  let received: Buffer = Buffer.alloc(0);
  const close = () => socket.destroy();
  const timer = setTimeout(close, timeoutMs);

  const onReadable = () => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
    const isPreface = haveSamePrefix(received, PREFACE);
    if (isPreface && received.length < PREFACE.length) return;
    stop();
    if (isPreface) socket.unshift(received);
    else unshiftInParts(socket, received);
    onDetected(isPreface ? 'h2' : 'http/1.1');
  };
  const stop = () => {
    clearTimeout(timer);
    socket.off('readable', onReadable).off('end', close).off('close', stop);
  };
  socket.on('readable', onReadable).on('end', close).on('close', stop);
}

/** Pushes back bytes that are then read in parts, in their order. */
function unshiftInParts(socket: Socket, bytes: Buffer): void {
  for (let end = bytes.length; end > 0; end -= PART_BYTES) {
    socket.unshift(bytes.subarray(Math.max(0, end - PART_BYTES), end));
  }
}

/** Whether the shorter buffer is a prefix of the longer one. */
function haveSamePrefix(a: Buffer, b: Buffer): boolean {
  const length = Math.min(a.length, b.length);
  return a.compare(b, 0, length, 0, length) === 0;
}
