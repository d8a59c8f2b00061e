import { CliError, ExitCode, exitCodeOf } from '../exit-codes.ts';
import type { HttpResponse } from './http.ts';
import { parseJsonObject } from './json.ts';

interface Status {
  readonly code: number;
  readonly message: string;
  readonly details: readonly Detail[];
}

/** The details of a status that are printed. */
interface Detail {
  readonly '@type'?: string;
  readonly fieldViolations?: readonly { readonly field?: string; readonly description?: string }[];
  /** A precondition has a type, a quota has a subject. */
  readonly violations?: readonly { readonly type?: string; readonly subject?: string; readonly description?: string }[];
  readonly metadata?: Readonly<Record<string, string>>;
  readonly requestId?: string;
}

/** The error for a response that is not a success: its message, its violations, and the request id. */
export function apiError(server: string, response: Omit<HttpResponse, 'headers'>): CliError {
  const status = parseStatus(response.text);
  if (status === undefined) return unexpectedResponse(server, response);
  const { details } = status;
  const lines = [
    ...details.flatMap(({ fieldViolations = [] }) => fieldViolations.map((v) => `${v.field}: ${v.description}`)),
    ...details.flatMap(({ violations = [] }) =>
      // The description of a quota is the message.
      violations.map((v) => (v.type === undefined ? `limit of ${v.subject}` : `${v.type}: ${v.description}`)),
    ),
    ...details.flatMap(({ metadata }) => explainHint(metadata)),
    ...details.flatMap(({ requestId }) => (requestId ? [`request id: ${requestId}`] : [])),
  ];
  return new CliError(exitCodeOf(status.code), status.message, lines);
}

/** A permission error names the missing capability and its scope, which `wharf auth explain` takes. */
function explainHint({ capabilities, scope }: Readonly<Record<string, string>> = {}): string[] {
  const [capability] = capabilities?.split(', ') ?? [];
  return capability && scope ? [`to see why: wharf auth explain ${capability} ${scope}`] : [];
}

function parseStatus(text: string): Status | undefined {
  const { code, message, details } = parseJsonObject(text) ?? {};
  if (typeof code !== 'number' || typeof message !== 'string') return undefined;
  return { code, message, details: (Array.isArray(details) ? details : []) as readonly Detail[] };
}

/** For responses that are not from the server, such as those of a proxy. */
const exitCodeByHttpStatus: Readonly<Record<number, ExitCode>> = {
  401: ExitCode.unauthenticated,
  403: ExitCode.denied,
  502: ExitCode.unavailable,
  503: ExitCode.unavailable,
  504: ExitCode.unavailable,
};

function unexpectedResponse(server: string, { status, statusText }: Omit<HttpResponse, 'headers'>): CliError {
  const advice = status < 400 || status === 404 ? ': this is not a Wharfinger server, check the address' : '';
  const exitCode = exitCodeByHttpStatus[status] ?? ExitCode.failure;
  return new CliError(exitCode, `${server} is reachable but answered ${status} ${statusText}`.trimEnd() + advice);
}
