import { Code } from './errors.ts';

const httpStatuses: Readonly<Record<Code, number>> = {
  [Code.OK]: 200,
  [Code.INVALID_ARGUMENT]: 400,
  [Code.FAILED_PRECONDITION]: 400,
  [Code.OUT_OF_RANGE]: 400,
  [Code.UNAUTHENTICATED]: 401,
  [Code.PERMISSION_DENIED]: 403,
  [Code.NOT_FOUND]: 404,
  [Code.ALREADY_EXISTS]: 409,
  [Code.ABORTED]: 409,
  [Code.RESOURCE_EXHAUSTED]: 429,
  // Not registered, but used by proxies for a client that disconnected.
  [Code.CANCELLED]: 499,
  [Code.UNKNOWN]: 500,
  [Code.INTERNAL]: 500,
  [Code.DATA_LOSS]: 500,
  [Code.UNIMPLEMENTED]: 501,
  [Code.UNAVAILABLE]: 503,
  [Code.DEADLINE_EXCEEDED]: 504,
};

/** The HTTP status of a code, as google.rpc.Code documents it. */
export const httpStatus = (code: Code): number => httpStatuses[code];
