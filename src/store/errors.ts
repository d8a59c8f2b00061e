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

/** The metadata by which clients and the registry recognise a full disk. */
const DISK_FULL = { cause: 'DISK_FULL' };

/** The database cannot write because its disk is full. Reads go on, and writes too as soon as there is space. */
export function diskFull(cause: unknown): ApiError {
  const error = new ApiError(Code.UNAVAILABLE, 'Unavailable: the disk of the database is full', [], { ...DISK_FULL });
  error.cause = cause;
  return error;
}

export const isDiskFull = (error: unknown): boolean =>
  error instanceof ApiError && error.metadata.cause === DISK_FULL.cause;

export const FULL_DISK_ADVICE =
  "its disk is full; free space, for example with 'wharf registry gc --grace 0s' if the blobs are on the same disk";

/** What an operator has to do about a database that does not recover by itself. */
export function adviceFor(error: ApiError): string | undefined {
  if (isDiskFull(error)) return FULL_DISK_ADVICE;
  if (/is damaged|is not a database/.test(error.message)) return 'stop the server and restore it from a backup';
  return undefined;
}

export const isUnavailable = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.code === Code.UNAVAILABLE;

export const databaseClosed = (): ApiError => unavailable('the database is closed');

export const nulInText = (): ApiError => invalid('text', 'must not contain the character NUL');

/** PostgreSQL cannot store NUL in text. SQLite can, but some of its functions truncate the text there. */
export function refuseNul(params: readonly Value[]): void {
  for (const param of params) if (typeof param === 'string' && param.includes('\0')) throw nulInText();
}
