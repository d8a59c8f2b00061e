import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { version } from '../../base/version.ts';
import { errorCode, errorMessage, rootCause } from '../error-message.ts';
import { CliError, ExitCode } from '../exit-codes.ts';

/** Longer than the default request timeout of the server, so that the server reports its timeout first. */
const TIMEOUT_MS = 60_000;

export interface HttpRequest {
  readonly verb: string;
  /** The origin of the server. */
  readonly server: string;
  /** The path and the query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** A certificate (PEM) to trust in addition to those of the system. */
  readonly ca?: string | undefined;
  readonly timeoutMs?: number;
}

export interface HttpResponse {
  readonly status: number;
  readonly statusText: string;
  readonly text: string;
  readonly headers: Headers;
}

/** Sends a request once and returns the response, whatever its status. Throws when there is no response. */
export async function sendRequest({ verb, server, path, headers, body, ca, timeoutMs = TIMEOUT_MS }: HttpRequest) {
  if (server.startsWith('https:')) trustCertificates(ca);
  try {
    const response = await fetch(`${server}${path}`, {
      method: verb,
      headers: { 'user-agent': `wharf/${version}`, accept: 'application/json', ...headers },
      // A redirect could send the token to another server.
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
      ...(body !== undefined && { body }),
    });
    const { status, statusText, headers: responseHeaders } = response;
    return { status, statusText, text: await response.text(), headers: responseHeaders } satisfies HttpResponse;
  } catch (error) {
    throw new CliError(ExitCode.unavailable, connectionErrorMessage(server, error, timeoutMs));
  }
}

/** Trusts the certificates of the system, as curl and browsers do. By default Node trusts only its bundled list. */
function trustCertificates(ca: string | undefined): void {
  const trusted = (['bundled', 'extra', 'system'] as const).flatMap((store) => getCACertificates(store));
  setDefaultCACertificates(ca === undefined ? trusted : [...trusted, ca]);
}

const UNTRUSTED_CODES = /^(?:DEPTH_ZERO_)?SELF_SIGNED|^UNABLE_TO_(?:VERIFY|GET)_|^CERT_|^ERR_TLS_CERT_/;

function connectionErrorMessage(server: string, error: unknown, timeoutMs: number): string {
  if (error instanceof Error && error.name === 'TimeoutError') {
    return `${server} did not respond within ${timeoutMs / 1000} s`;
  }
  const code = errorCode(error) ?? '';
  switch (code) {
    case 'ECONNREFUSED':
      return `nothing listens at ${server}: start a server with 'wharf serve', or select another server with --server (WHARF_SERVER)`;
    case 'ENOTFOUND':
      return `the host of ${server} is unknown: check --server (WHARF_SERVER)`;
  }
  if (UNTRUSTED_CODES.test(code)) {
    return `the certificate of ${server} is not trusted (${code}): give its CA with --ca (WHARF_CA)`;
  }
  if (code.startsWith('ERR_SSL_'))
    return `the TLS handshake with ${server} failed (${code}): is it an http:// address?`;
  return `cannot reach ${server}: ${errorMessage(rootCause(error))}`;
}
