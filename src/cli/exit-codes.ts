import { Code } from '../base/errors.ts';

/** The exit codes. They let scripts distinguish failures. */
export const ExitCode = {
  ok: 0,
  failure: 1,
  usage: 2,
  unauthenticated: 3,
  denied: 4,
  notFound: 5,
  conflict: 6,
  precondition: 7,
  invalid: 8,
  unavailable: 9,
  damaged: 10,
} as const;
export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];

/** The descriptions in the help. */
export const exitCodeMeanings: Readonly<Record<ExitCode, string>> = {
  [ExitCode.ok]: 'success',
  [ExitCode.failure]: 'any other failure',
  [ExitCode.usage]: 'invalid command line; nothing was sent',
  [ExitCode.unauthenticated]: 'no token, or an invalid token',
  [ExitCode.denied]: 'permission denied',
  [ExitCode.notFound]: 'not found',
  [ExitCode.conflict]: 'the resource exists already, or was changed concurrently',
  [ExitCode.precondition]: 'a precondition failed, such as deleting a group that is not empty',
  [ExitCode.invalid]: 'the server rejected a value',
  [ExitCode.unavailable]: 'the server cannot be reached, or did not respond in time',
  [ExitCode.damaged]: 'a check found stored data that is damaged or missing',
};

const exitCodeByStatus: Partial<Readonly<Record<number, ExitCode>>> = {
  [Code.UNAUTHENTICATED]: ExitCode.unauthenticated,
  [Code.PERMISSION_DENIED]: ExitCode.denied,
  [Code.NOT_FOUND]: ExitCode.notFound,
  [Code.ALREADY_EXISTS]: ExitCode.conflict,
  [Code.ABORTED]: ExitCode.conflict,
  [Code.FAILED_PRECONDITION]: ExitCode.precondition,
  [Code.INVALID_ARGUMENT]: ExitCode.invalid,
  [Code.OUT_OF_RANGE]: ExitCode.invalid,
  [Code.UNAVAILABLE]: ExitCode.unavailable,
  [Code.DEADLINE_EXCEEDED]: ExitCode.unavailable,
};

/** Returns the exit code for a status code of the API. */
export const exitCodeOf = (code: number): ExitCode => exitCodeByStatus[code] ?? ExitCode.failure;

/** An error with an exit code. `details` are printed below the message, one per line. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly exitCode: ExitCode;
  readonly details: readonly string[];

  constructor(exitCode: ExitCode, message: string, details: readonly string[] = []) {
    super(message);
    this.exitCode = exitCode;
    this.details = details;
  }
}

/** An error in the command line. */
export const usageError = (message: string, details: readonly string[] = []): CliError =>
  new CliError(ExitCode.usage, message, details);
