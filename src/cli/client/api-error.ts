import { CliError, ExitCode, exitCodeOf } from '../exit-codes.ts';
import type { HttpAnswer } from './http.ts';
import { parseObject } from './json.ts';

interface Status {
  readonly code: number;
  readonly message: string;
  readonly details: readonly Detail[];
}

/** The details that people can do something with; `@type` tells which fields there are. */
interface Detail {
  readonly '@type'?: string;
  readonly fieldViolations?: readonly { readonly field?: string; readonly description?: string }[];
  readonly violations?: readonly { readonly type?: string; readonly description?: string }[];
  readonly metadata?: Readonly<Record<string, string>>;
  readonly requestId?: string;
}

/** An answer that is no success, in words: the message, what is wrong in particular, and the request id for the log. */
export function apiError(server: string, answer: Omit<HttpAnswer, 'headers'>): CliError {
  const status = parseStatus(answer.text);
  if (status === undefined) return strangeAnswer(server, answer);
  const { details } = status;
  const lines = [
    ...details.flatMap(({ fieldViolations = [] }) => fieldViolations.map((v) => `${v.field}: ${v.description}`)),
    ...details.flatMap(({ violations = [] }) => violations.map((v) => `${v.type}: ${v.description}`)),
    ...details.flatMap(({ metadata }) => hint(metadata)),
    ...details.flatMap(({ requestId }) => (requestId ? [`request id: ${requestId}`] : [])),
  ];
  return new CliError(exitCodeOf(status.code), status.message, lines);
}

/** A refusal says which capability was missing where; we know who can tell more. */
function hint({ capabilities, scope }: Readonly<Record<string, string>> = {}): string[] {
  const [capability] = capabilities?.split(', ') ?? [];
  return capability && scope ? [`to see why: wharf auth explain ${capability} ${scope}`] : [];
}

function parseStatus(text: string): Status | undefined {
  const { code, message, details } = parseObject(text) ?? {};
  if (typeof code !== 'number' || typeof message !== 'string') return undefined;
  return { code, message, details: (Array.isArray(details) ? details : []) as readonly Detail[] };
}

/** What stands between us and the server, such as a proxy, answers in its own words. */
const byStatus: Readonly<Record<number, ExitCode>> = {
  401: ExitCode.unauthenticated,
  403: ExitCode.denied,
  502: ExitCode.unavailable,
  503: ExitCode.unavailable,
  504: ExitCode.unavailable,
};

function strangeAnswer(server: string, { status, statusText }: Omit<HttpAnswer, 'headers'>): CliError {
  const doubt = status < 400 || status === 404 ? ', not like a Wharfinger server: is it the right address?' : '';
  const exitCode = byStatus[status] ?? ExitCode.failure;
  return new CliError(exitCode, `${server} is reachable but answered ${status} ${statusText}`.trimEnd() + doubt);
}
