import { DatabaseError } from 'pg';
import { ApiError, Code } from '../../base/errors.ts';
import { nulInText, unavailable } from '../errors.ts';
import { UniqueViolation } from '../store.ts';

/** SQLSTATE codes and classes, https://www.postgresql.org/docs/current/errcodes-appendix.html; the first that fits holds. */
const TROUBLE: readonly (readonly [prefix: string, description: string])[] = [
  ['53100', 'the disk of the database is full'],
  ['53', 'the database is short of resources'],
  ['57014', 'the database took too long to answer'],
  ['57', 'the database is shutting down or starting'],
  ['25006', 'the database is read-only'],
  ['25P', 'the database ended an idle transaction'],
  ['28', 'the database refused the login'],
  ['3D', 'the database does not exist'],
  ['55P03', 'the database took too long to answer'],
  ['58', 'the database met an error of its system'],
  ['XX00', 'the database is damaged'],
];
const UNIQUE_VIOLATION = '23505';
const NUL_IN_JSON = '22P05';
const SERIALIZATION_FAILURE = '40001';
const DEADLOCK = '40P01';

/** What is not the database's own trouble, such as a mistake in a statement, stays as it is: a bug, to be logged. */
export function translate(error: unknown): unknown {
  if (error instanceof DatabaseError) {
    const { code = '', table = 'unknown' } = error;
    if (code === UNIQUE_VIOLATION) return new UniqueViolation(table, error);
    if (code === NUL_IN_JSON) return nulInText();
    if (code === SERIALIZATION_FAILURE || code === DEADLOCK) return conflict(error);
    const trouble = TROUBLE.find(([prefix]) => code.startsWith(prefix));
    if (trouble !== undefined) return unavailable(trouble[1], error);
  }
  return isBroken(error) ? unavailable('the database cannot be reached', error) : error;
}

/** Whether the connection is of no further use. The driver has no type for that: it is all it throws but these. */
export const isBroken = (error: unknown): boolean =>
  error instanceof DatabaseError
    ? error.severity === 'FATAL' || error.severity === 'PANIC'
    : !(error instanceof TypeError || error instanceof RangeError);

function conflict(cause: DatabaseError): ApiError {
  const error = new ApiError(Code.ABORTED, 'Aborted: other changes were made at the same time; try again');
  error.cause = cause;
  return error;
}

/** Whether the transaction lost against another one, so that it can run again. */
export const isConflict = (error: unknown): boolean =>
  error instanceof ApiError && error.code === Code.ABORTED && error.cause instanceof DatabaseError;
