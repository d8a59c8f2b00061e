import type { OutgoingHttpHeaders } from 'node:http';

/**
 * The CORS headers, which allow web pages of other origins to call the API
 * (https://fetch.spec.whatwg.org/#http-cors-protocol).
 */
export interface Cors {
  /** The headers of every response. */
  headers(origin: string | undefined): OutgoingHttpHeaders;
  /** The headers of a response to OPTIONS, the preflight request of a browser. */
  preflight(origin: string | undefined, verbs: string): OutgoingHttpHeaders;
}

const EXPOSED = 'x-request-id';
const OPEN: OutgoingHttpHeaders = { 'access-control-allow-origin': '*', 'access-control-expose-headers': EXPOSED };

/** Pages send tokens in a header that they set, so credentials (cookies) are never allowed and `*` is safe. */
export function createCors(origins: readonly string[]): Cors {
  const isOpen = origins.includes('*');
  const allowed = new Set(origins);

  const headers = (origin: string | undefined): OutgoingHttpHeaders => {
    if (isOpen) return OPEN;
    if (allowed.size === 0) return {};
    if (!allowed.has(origin ?? '')) return { vary: 'origin' };
    return { 'access-control-allow-origin': origin, 'access-control-expose-headers': EXPOSED, vary: 'origin' };
  };
  return {
    headers,
    preflight(origin, verbs) {
      const common = headers(origin);
      if (common['access-control-allow-origin'] === undefined) return common;
      return {
        ...common,
        'access-control-allow-methods': verbs,
        'access-control-allow-headers': 'authorization, content-type, x-request-id',
        'access-control-max-age': '7200',
      };
    },
  };
}
