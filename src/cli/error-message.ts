import { redactText } from '../base/redact.ts';

/** Returns the message of an error and its cause in one line, without secrets. */
export function errorMessage(error: unknown): string {
  const root = rootCause(error);
  const texts = [error, root].map((part) => (part instanceof Error ? part.message : String(part))).filter(Boolean);
  const [first = 'unknown error', cause = first] = texts;
  return oneLine(redactText(first.includes(cause) ? first : `${first} (${cause})`));
}

/** Returns the innermost cause of an error. It has the error code of the system. */
export function rootCause(error: unknown): unknown {
  // A failed connection to both addresses of localhost is an AggregateError with an empty message.
  if (error instanceof AggregateError) return rootCause(error.errors[0]);
  return error instanceof Error && error.cause instanceof Error ? rootCause(error.cause) : error;
}

export const oneLine = (text: string): string => text.trim().replace(/\s*[\r\n]\s*/g, ' ');

/** The system's code of the root cause, such as `ECONNREFUSED`. */
export const errorCode = (error: unknown): string | undefined =>
  (rootCause(error) as { code?: string } | undefined)?.code;
