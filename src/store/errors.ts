import { ApiError, Code, invalid } from '../base/errors.ts';
import type { Value } from './value.ts';

/**
 * The database cannot be used now. Clients see the description. The message of the driver is in `cause`, for the log.
 */
export function unavailable(description: string, cause?: unknown): ApiError {
  const error = new ApiError(Code.UNAVAILABLE, `Unavailable: ${description}`);
  if (cause !== undefined) error.cause = cause;
  return error;
}

export const isUnavailable = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.code === Code.UNAVAILABLE;

export const databaseClosed = (): ApiError => unavailable('the database is closed');

export const nulInText = (): ApiError => invalid('text', 'must not contain the character NUL');

/** PostgreSQL cannot store NUL in text. SQLite can, but some of its functions truncate the text there. */
export function refuseNul(params: readonly Value[]): void {
  for (const param of params) if (typeof param === 'string' && param.includes('\0')) throw nulInText();
}
