import { Code } from '../base/errors.ts';

/** How the program ends, so that scripts can tell failures apart. */
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
} as const;
export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];

/** For people; the help prints it. */
export const exitCodeMeanings: Readonly<Record<ExitCode, string>> = {
  [ExitCode.ok]: 'done',
  [ExitCode.failure]: 'any other failure',
  [ExitCode.usage]: 'the command line is wrong; nothing was sent',
  [ExitCode.unauthenticated]: 'no token, or not a good one',
  [ExitCode.denied]: 'permission denied',
  [ExitCode.notFound]: 'not found',
  [ExitCode.conflict]: 'it exists already, or somebody else was faster',
  [ExitCode.precondition]: 'the state forbids it, such as a group that is not empty',
  [ExitCode.invalid]: 'the server refuses a value',
  [ExitCode.unavailable]: 'the server cannot be reached, or is too slow',
};

const byCode: Partial<Readonly<Record<number, ExitCode>>> = {
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

/** The exit code for a status of the API. */
export const exitCodeOf = (code: number): ExitCode => byCode[code] ?? ExitCode.failure;

/** A failure with an exit code of its own. `details` are further lines below the message. */
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

/** What was typed cannot be done, whatever the server says. */
export const misused = (message: string, details: readonly string[] = []): CliError =>
  new CliError(ExitCode.usage, message, details);
