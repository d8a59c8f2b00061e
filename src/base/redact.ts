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
/** The most characters of all fields of a line together. What comes after them is replaced by CUT. */
const MAX_TOTAL = 8192;
const CUT = '[cut]';
const MAX_ITEMS = 50;
const MAX_DEPTH = 5;
/** Frames of a stack. Those further out are the event loop and libraries. */
const MAX_FRAMES = 8;

/** Replaces the secrets that are recognizable by their form. */
export function redactText(text: string): string {
  // Searched up to twice the limit, so that a secret across the limit is matched as a whole.
  let clean = text.slice(0, 2 * MAX_TEXT);
  for (const [pattern, replacement] of secretText) clean = clean.replace(pattern, replacement);
  return clean.length > MAX_TEXT ? `${clean.slice(0, MAX_TEXT)}…` : clean;
}

/** How many characters the line may still get. */
interface Budget {
  left: number;
}

/** A copy for a log line: secrets are replaced, errors become plain objects, and the size is bounded. */
export const redact = (value: unknown): unknown => redactValue(value, 0, { left: MAX_TOTAL });

function redactValue(value: unknown, depth: number, budget: Budget): unknown {
  if (budget.left <= 0) return CUT;
  if (typeof value === 'string') {
    const text = redactText(value);
    budget.left -= text.length;
    return text;
  }
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= MAX_DEPTH) return '[deep]';
  if (value instanceof Uint8Array) return `[${value.length} bytes]`;
  if (value instanceof Error) return redactFields(errorFields(value), depth, budget);
  if (Array.isArray(value)) return value.slice(0, MAX_ITEMS).map((item) => redactValue(item, depth + 1, budget));
  if ('toJSON' in value && typeof value.toJSON === 'function') return redactValue(value.toJSON(), depth + 1, budget);
  // Objects of a class are not made for the log. A database client, for example, contains its statements and rows.
  if (!isPlain(value)) return `[${value.constructor?.name ?? 'object'}]`;
  return redactFields(value, depth, budget);
}

function redactFields(fields: object, depth: number, budget: Budget): Record<string, unknown> {
  const clean: Record<string, unknown> = {};
  let count = 0;
  for (const [name, value] of Object.entries(fields)) {
    if (++count > MAX_ITEMS) break;
    budget.left -= name.length;
    clean[name] = secretName.test(name) && value != null ? REDACTED : redactValue(value, depth + 1, budget);
  }
  return clean;
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/**
 * The fields of an error that say what happened: codes, and names of hosts, tables and files. The others are not
 * logged: libraries add whole connections, statements and rows of the database to their errors.
 */
const errorFieldNames = [
  ...['code', 'errno', 'syscall', 'address', 'port', 'hostname', 'path'],
  // PostgreSQL and SQLite.
  ...['severity', 'table', 'column', 'constraint', 'errcode', 'errstr'],
];

function errorFields(error: Error): Record<string, unknown> {
  const fields: Record<string, unknown> = { type: error.name, message: error.message };
  for (const name of errorFieldNames) {
    const value = (error as unknown as Record<string, unknown>)[name];
    if (typeof value === 'string' || typeof value === 'number') fields[name] = value;
  }
  const frames = framesOf(error);
  if (frames !== '') fields.stack = frames;
  if (error.cause !== undefined) fields.cause = error.cause;
  if (error instanceof AggregateError) fields.errors = error.errors.slice(0, 3);
  return fields;
}

/** The innermost frames, without the message, which the stack repeats. */
const framesOf = ({ stack }: Error): string =>
  String(stack ?? '')
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .slice(0, MAX_FRAMES)
    .join('\n');
