import { ApiError, Code } from '../base/errors.ts';

/** What a client may call its request: nothing that we would not want in a log line. */
const SANE = /^[\w.-]{1,128}$/;

/** The first id that the client gave itself, by the names that clients use, else a new one. */
export function requestIdOf(given: (name: string) => string | undefined, newRequestId: () => string): string {
  const own = given('x-request-id') ?? given('cgrequestid');
  return own !== undefined && SANE.test(own) ? own : newRequestId();
}

/** Why a signal is aborted when the client leaves. */
export const clientGone = new ApiError(Code.CANCELLED, 'Cancelled: the client went away');
