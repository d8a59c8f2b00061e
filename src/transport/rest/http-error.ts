import type { OutgoingHttpHeaders } from 'node:http';
import { ApiError, Code, retryAfterOf } from '../../base/errors.ts';
import { httpStatus } from '../../base/http-status.ts';

/** An error whose HTTP status does not follow from its code. */
class HttpError extends ApiError {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;

  constructor(status: number, headers: OutgoingHttpHeaders, ...error: ConstructorParameters<typeof ApiError>) {
    super(...error);
    this.status = status;
    this.headers = headers;
  }
}

export const verbNotAllowed = (verb: string, allow: string): ApiError =>
  new HttpError(
    405,
    { allow },
    Code.UNIMPLEMENTED,
    `Unimplemented: this path does not support ${verb}; use one of ${allow}`,
  );

/**
 * RESOURCE_EXHAUSTED, which gRPC also uses for a message that is too large. The status is 413 and not 429, because a
 * retry would not help.
 */
export function bodyTooLarge(maxBytes: number): ApiError {
  const description = `must not exceed ${maxBytes} bytes`;
  return new HttpError(413, {}, Code.RESOURCE_EXHAUSTED, `Resource exhausted: body: ${description}`, [
    { type: 'BadRequest', fieldViolations: [{ field: 'body', description }] },
  ]);
}

/** Unlike a body that is too large, the request can be repeated. */
export const tooManyBodies = (): ApiError =>
  new HttpError(
    429,
    { 'retry-after': '1' },
    Code.RESOURCE_EXHAUSTED,
    'Resource exhausted: the server is receiving too many requests that are not authenticated; try again later',
  );

/** The status and the headers of an error response. */
export function httpHead(error: ApiError): { readonly status: number; readonly headers: OutgoingHttpHeaders } {
  if (error instanceof HttpError) return error;
  const status = httpStatus(error.code);
  switch (error.code) {
    case Code.UNAUTHENTICATED:
      return { status, headers: { 'www-authenticate': 'Bearer realm="wharfinger"' } };
    case Code.UNAVAILABLE:
    case Code.RESOURCE_EXHAUSTED: {
      const retryAfter = retryAfterOf(error) ?? (error.code === Code.UNAVAILABLE ? '1' : undefined);
      return { status, headers: retryAfter === undefined ? {} : { 'retry-after': retryAfter } };
    }
    default:
      return { status, headers: {} };
  }
}
