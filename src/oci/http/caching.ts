import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';

/** What is named by its digest never changes; what it is found by may. Only the client itself may keep either. */
export const lasting = (digest: string, how: 'for ever' | 'until it moves'): OutgoingHttpHeaders => ({
  etag: `"${digest}"`,
  'cache-control': how === 'for ever' ? 'private, max-age=31536000, immutable' : 'private, no-cache',
});

/** Whether the client has it already. If-None-Match compares weakly; RFC 9110, section 13.1.2. */
export function isCurrent({ headers }: IncomingMessage, digest: string): boolean {
  const known = headers['if-none-match'];
  if (known === undefined) return false;
  return known.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === `"${digest}"`);
}
