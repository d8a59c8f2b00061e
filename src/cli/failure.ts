import { redactText } from '../base/redact.ts';

/** One line for a person: no secrets, no stack. */
export function messageOf(error: unknown): string {
  const root = rootOf(error);
  const texts = [error, root].map((part) => (part instanceof Error ? part.message : String(part))).filter(Boolean);
  const [first = 'unknown error', cause = first] = texts;
  return oneLine(redactText(first.includes(cause) ? first : `${first} (${cause})`));
}

/** The first cause of an error, which is where the system's codes are. */
export function rootOf(error: unknown): unknown {
  // Trying both addresses of localhost gives an AggregateError, with an empty message of its own.
  if (error instanceof AggregateError) return rootOf(error.errors[0]);
  return error instanceof Error && error.cause instanceof Error ? rootOf(error.cause) : error;
}

export const oneLine = (text: string): string => text.trim().replace(/\s*[\r\n]\s*/g, ' ');

/** The system's code of an error or of its cause, such as `ECONNREFUSED`. */
export const errorCode = (error: unknown): string | undefined => (rootOf(error) as { code?: string } | undefined)?.code;
