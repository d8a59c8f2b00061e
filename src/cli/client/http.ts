import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { version } from '../../base/version.ts';
import { CliError, ExitCode } from '../exit-codes.ts';
import { errorCode, messageOf, rootOf } from '../failure.ts';

/** Longer than a server takes by default before it says itself that it took too long. */
const PATIENCE_MS = 60_000;

export interface HttpRequest {
  readonly verb: string;
  /** The origin of the server, and what follows it. */
  readonly server: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** A certificate (PEM) to trust beside those of the system. */
  readonly ca?: string | undefined;
  readonly patienceMs?: number;
}

export interface HttpAnswer {
  readonly status: number;
  readonly statusText: string;
  readonly text: string;
  readonly headers: Headers;
}

/** One request and its answer, whatever the status; throws when there is no answer. Nothing is sent twice. */
export async function send({ verb, server, path, headers, body, ca, patienceMs = PATIENCE_MS }: HttpRequest) {
  if (server.startsWith('https:')) trustRoots(ca);
  try {
    const answer = await fetch(`${server}${path}`, {
      method: verb,
      headers: { 'user-agent': `wharf/${version}`, accept: 'application/json', ...headers },
      // A token is for this server and no other, and an API does not move.
      redirect: 'manual',
      signal: AbortSignal.timeout(patienceMs),
      ...(body !== undefined && { body }),
    });
    const { status, statusText, headers: told } = answer;
    return { status, statusText, text: await answer.text(), headers: told } satisfies HttpAnswer;
  } catch (error) {
    throw new CliError(ExitCode.unavailable, unreachable(server, error, patienceMs));
  }
}

/** Node trusts a list of its own; we also trust what the machine does, as curl and browsers do. */
function trustRoots(ca: string | undefined): void {
  const known = (['bundled', 'extra', 'system'] as const).flatMap((store) => getCACertificates(store));
  setDefaultCACertificates(ca === undefined ? known : [...known, ca]);
}

const UNTRUSTED = /^(?:DEPTH_ZERO_)?SELF_SIGNED|^UNABLE_TO_(?:VERIFY|GET)_|^CERT_|^ERR_TLS_CERT_/;

function unreachable(server: string, error: unknown, patienceMs: number): string {
  if (error instanceof Error && error.name === 'TimeoutError') {
    return `${server} did not answer within ${patienceMs / 1000} s`;
  }
  const code = errorCode(error) ?? '';
  switch (code) {
    case 'ECONNREFUSED':
      return `nothing listens at ${server}: start a server with 'wharf serve', or name another with --server (WHARF_SERVER)`;
    case 'ENOTFOUND':
      return `the host of ${server} is not known: is --server (WHARF_SERVER) spelled right?`;
  }
  if (UNTRUSTED.test(code)) {
    return `the certificate of ${server} is not trusted (${code}): name its CA with --ca (WHARF_CA)`;
  }
  if (code.startsWith('ERR_SSL_')) return `${server} does not speak TLS as we do (${code}): is it an http:// address?`;
  return `cannot reach ${server}: ${messageOf(rootOf(error))}`;
}
