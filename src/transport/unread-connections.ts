import type { Socket } from 'node:net';
import type { Log } from '../base/log.ts';

/** The part of libuv's stream that `node:net` has no property for; HTTP/2 bypasses the buffer of the socket. */
interface StreamHandle {
  /** Bytes that the operating system has not taken yet. */
  readonly writeQueueSize: number;
  readonly bytesWritten: number;
}

interface Progress {
  sent: number;
  since: number;
}

/** Destroys connections whose client reads nothing for `unreadMs` while bytes for it are waiting. Returns its timer. */
export function closeUnreadConnections(open: Iterable<Socket>, unreadMs: number, log: Log): NodeJS.Timeout {
  const waiting = new Map<Socket, Progress>();
  const check = (): void => {
    const now = performance.now();
    for (const socket of waiting.keys()) if (socket.destroyed) waiting.delete(socket);
    for (const socket of open) {
      const { _handle: handle } = socket as Socket & { readonly _handle?: StreamHandle | null };
      if (!handle || handle.writeQueueSize === 0) {
        waiting.delete(socket);
        continue;
      }
      const sent = handle.bytesWritten - handle.writeQueueSize;
      const progress = waiting.get(socket);
      if (progress?.sent !== sent) {
        waiting.set(socket, { sent, since: now });
      } else if (now - progress.since >= unreadMs) {
        log.debug({ address: socket.remoteAddress }, 'closing a connection whose client does not read');
        waiting.delete(socket);
        socket.destroy();
      }
    }
  };
  return setInterval(check, Math.ceil(unreadMs / 10)).unref();
}
