import { DatabaseError } from 'pg';
import { ApiError, Code } from '../../base/errors.ts';
import { diskFull, nulInText, unavailable } from '../errors.ts';
import { UniqueViolation } from '../store.ts';

/**
 * By SQLSTATE code or class, https://www.postgresql.org/docs/current/errcodes-appendix.html. The first match applies.
 */
const UNAVAILABLE_STATES: readonly (readonly [prefix: string, description: string])[] = [
  ['53', 'the database is out of resources'],
  ['57014', 'the database did not respond in time'],
  ['57', 'the database is shutting down or starting'],
  ['25006', 'the database is read-only'],
  ['25P', 'the database ended an idle transaction'],
  ['28', 'the database refused the login'],
  ['3D', 'the database does not exist'],
  ['55P03', 'the database did not respond in time'],
  ['58', 'the operating system of the database reported an error'],
  ['XX00', 'the database is damaged'],
];
const UNIQUE_VIOLATION = '23505';
const DISK_FULL = '53100';
const NUL_IN_JSON = '22P05';
const SERIALIZATION_FAILURE = '40001';
const DEADLOCK = '40P01';

/**
 * Turns an error of the driver into one of the store. Any other error, such as an invalid statement, is returned as it
 * is: it is a bug and is logged.
 */
export function translateError(error: unknown): unknown {
  if (error instanceof DatabaseError) {
    const { code = '', table = 'unknown' } = error;
    if (code === UNIQUE_VIOLATION) return new UniqueViolation(table, error);
    if (code === DISK_FULL) return diskFull(error);
    if (code === NUL_IN_JSON) return nulInText();
    if (code === SERIALIZATION_FAILURE || code === DEADLOCK) return conflict(error);
    const state = UNAVAILABLE_STATES.find(([prefix]) => code.startsWith(prefix));
    if (state !== undefined) return unavailable(state[1], error);
  }
  return isBroken(error) ? unavailable('the database cannot be reached', error) : error;
}

/** Whether the connection can no longer be used. The driver has no type for such errors: it is every type but these. */
export const isBroken = (error: unknown): boolean =>
  error instanceof DatabaseError
    ? error.severity === 'FATAL' || error.severity === 'PANIC'
    : !(error instanceof TypeError || error instanceof RangeError);

function conflict(cause: DatabaseError): ApiError {
  const error = new ApiError(Code.ABORTED, 'Aborted: the change conflicts with concurrent changes; try again');
  error.cause = cause;
  return error;
}

/** Whether the transaction conflicted with another one, so that it can be retried. */
export const isConflict = (error: unknown): boolean =>
  error instanceof ApiError && error.code === Code.ABORTED && error.cause instanceof DatabaseError;
