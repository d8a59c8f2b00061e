import { ApiError, Code, invalid } from '../base/errors.ts';
import { statusJson } from './error-status.ts';
import type { Limits } from './limits.ts';

/** The response to a request that no handler gets, or that a handler does not finish. */
export interface Refusal {
  readonly status: number;
  readonly reason: ApiError;
}

export const REFUSED_TOO_SLOW: Refusal = {
  status: 408,
  reason: new ApiError(Code.DEADLINE_EXCEEDED, 'Deadline exceeded: the request took too long to arrive'),
};

export const REFUSED_STOPPING: Refusal = {
  status: 503,
  reason: new ApiError(Code.UNAVAILABLE, 'Unavailable: the server stops and could not finish the request; try again'),
};

export const REFUSED_NO_HOST: Refusal = {
  status: 400,
  reason: invalid('host', 'must be present: RFC 9112 section 3.2'),
};

export const REFUSED_MALFORMED: Refusal = {
  status: 400,
  reason: invalid('request', 'must be well-formed HTTP/1.1'),
};

export const REFUSED_BUSY: Refusal = {
  status: 429,
  reason: new ApiError(
    Code.RESOURCE_EXHAUSTED,
    'Resource exhausted: the server is receiving too many requests that are not authenticated; try again later',
  ),
};

export const headersTooLarge = ({ headerBytes }: Limits): Refusal => ({
  status: 431,
  reason: invalid('headers', `must not exceed ${headerBytes} bytes in total`),
});

export interface RefusalContext {
  readonly serviceDomain: string;
  readonly newRequestId: () => string;
}

/** The body and the headers of a refusal. */
export function refusalResponse({ reason }: Refusal, { serviceDomain, newRequestId }: RefusalContext) {
  const body = JSON.stringify(statusJson(reason, { domain: undefined, serviceDomain, requestId: newRequestId() }));
  const headers = {
    'content-type': 'application/json',
    'x-content-type-options': 'nosniff',
    'content-length': Buffer.byteLength(body),
  };
  return { body, headers };
}

/**
 * Browsers remember Strict-Transport-Security (RFC 6797) for a host name with all its ports, so on localhost it would
 * break other programs of a developer. For IP addresses they ignore it.
 */
export const takesHsts = (host = ''): boolean => !/^(?:[^:]+\.)?localhost\.?(?::\d*)?$/i.test(host);
