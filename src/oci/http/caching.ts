import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';

/** Content under a digest never changes; a tag may move. Both are private: shared caches must not store them. */
export const cacheHeaders = (digest: string, by: 'digest' | 'tag'): OutgoingHttpHeaders => ({
  etag: `"${digest}"`,
  'cache-control': by === 'digest' ? 'private, max-age=31536000, immutable' : 'private, no-cache',
});

/** Whether the client has this content already. If-None-Match compares weakly (RFC 9110, section 13.1.2). */
export function isNotModified({ headers }: IncomingMessage, digest: string): boolean {
  const etags = headers['if-none-match'];
  if (etags === undefined) return false;
  return etags.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === `"${digest}"`);
}
