/** Replaces a secret. */
export const REDACTED = '[redacted]';

/** Names of fields with secret values: `authorization`, `client_secret`, `masterKey`, `set-cookie`, but not `keyId`. */
const secretName = /authorization|cookie|credential|passphrase|passw(?:or)?d|secret|token|assertion|keys?$/i;

// Secrets inside free text, such as the message of an error. Each pattern starts with a literal, which bounds the time
// of a search. It also matches a secret whose end is missing, because MAX_TEXT may cut a secret.
const secretText: readonly [RegExp, string][] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, REDACTED],
  [/\b(authorization["']?\s*[:=]\s*["']?)(?:(?:Bearer|Basic)\s+)?[^\s"',]+/gi, `$1${REDACTED}`],
  [/\b(Bearer|Basic)\s+[\w.~+/=-]{12,}/gi, `$1 ${REDACTED}`],
  [/\beyJ[\w-]{8,}(?:\.[\w-]*){0,4}/g, REDACTED],
  [/(:\/\/[^\s/:@]*):\S*@/g, `$1:${REDACTED}@`],
  [/\b(\w*(?:token|secret|password|assertion)=)[^\s&"']+/gi, `$1${REDACTED}`],
  [/("\w*(?:token|secret|password|assertion|key)"\s*:\s*")[^"]*/gi, `$1${REDACTED}`],
];

/** Longer texts are cut, because clients decide how long the texts are that they send. */
const MAX_TEXT = 2048;
const MAX_ITEMS = 50;
const MAX_DEPTH = 5;

/** Replaces the secrets that are recognizable by their form. */
export function redactText(text: string): string {
  // Searched up to twice the limit, so that a secret across the limit is matched as a whole.
  let clean = text.slice(0, 2 * MAX_TEXT);
  for (const [pattern, replacement] of secretText) clean = clean.replace(pattern, replacement);
  return clean.length > MAX_TEXT ? `${clean.slice(0, MAX_TEXT)}…` : clean;
}

/** A copy for a log line: secrets are replaced, errors become plain objects, and the size is bounded. */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return redactText(value);
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= MAX_DEPTH) return '[deep]';
  if (value instanceof Uint8Array) return `[${value.length} bytes]`;
  if (value instanceof Error) return redact(errorFields(value), depth);
  if (Array.isArray(value)) return value.slice(0, MAX_ITEMS).map((item) => redact(item, depth + 1));
  if ('toJSON' in value && typeof value.toJSON === 'function') return redact(value.toJSON(), depth + 1);
  return redactFields(value, depth);
}

function redactFields(fields: object, depth: number): Record<string, unknown> {
  const clean: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    clean[name] = secretName.test(name) && value != null ? REDACTED : redact(value, depth + 1);
  }
  return clean;
}

/** Name, message and stack of an error are not enumerable; further fields such as `code` and `address` are. */
const errorFields = (error: Error): object => ({
  type: error.name,
  message: error.message,
  stack: error.stack,
  ...(error.cause === undefined ? {} : { cause: error.cause }),
  ...Object.fromEntries(Object.entries(error)),
});
