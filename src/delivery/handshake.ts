import type { SinkConnection } from './sink-connection.ts';

// The handshake of "HTTP 1.1 Web Hooks for Event Delivery" of CloudEvents, section 4 (abuse protection). A receiver
// permits deliveries by a header. The status of its response means nothing, because many servers answer every request
// with success.

export interface Permission {
  readonly isPermitted: boolean;
  /** The most requests per minute; undefined if the sink states no limit. */
  readonly allowedRate: number | undefined;
}

/** The name by which this server introduces itself to sinks: its host. */
export const originOf = (publicUrl: string): string => new URL(publicUrl).hostname;

/** Asks a sink for its permission. Throws an OutgoingError if there is no response. */
export async function requestPermission(
  connection: SinkConnection,
  origin: string,
  stop: AbortSignal,
): Promise<Permission> {
  const { headers } = await connection.send('OPTIONS', { 'webhook-request-origin': origin }, '', stop);
  return readPermission(headers, origin);
}

/** Reads the response headers of a handshake. */
export function readPermission(headers: Readonly<Record<string, unknown>>, origin: string): Permission {
  const origins = String(headers['webhook-allowed-origin'] ?? '')
    .split(',')
    .map((one) => one.trim().toLowerCase());
  const rate = String(headers['webhook-allowed-rate'] ?? '').trim();
  return {
    isPermitted: origins.includes('*') || origins.includes(origin.toLowerCase()),
    allowedRate: /^[1-9]\d{0,8}$/.test(rate) ? Number(rate) : undefined,
  };
}
