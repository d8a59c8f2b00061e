import { isIP } from 'node:net';
import { isPublicAddress } from '../../base/ip-address.ts';
import { isLoopbackHost } from '../../base/issuer-url.ts';

/**
 * A request to another server that failed. The message is for the user who configured the address. It must not help to
 * explore the network of this server. The `cause` is for the log.
 */
export class OutgoingError extends Error {
  override readonly name = 'OutgoingError';
}

/** The same message for a host that does not exist and for a private one, so that users cannot distinguish them. */
export const NO_PUBLIC_ADDRESS = 'its host has no public address';

/**
 * Parses a URL that a user configured, and refuses one that this server must not connect to. The addresses of host
 * names are checked when they are resolved (guarded-lookup.ts).
 */
export function permittedUrl(text: string, allowPrivate: boolean): URL {
  if (!URL.canParse(text)) throw new OutgoingError('its address is not a URL');
  const url = new URL(text);
  const isPermittedHttp = url.protocol === 'http:' && allowPrivate && isLoopbackHost(url.hostname);
  if (url.protocol !== 'https:' && !isPermittedHttp) {
    throw new OutgoingError('its address does not begin with https://');
  }
  if (url.username !== '' || url.password !== '') {
    throw new OutgoingError('its address contains a user name or password');
  }
  const host = url.hostname.replace(/^\[|\]$/g, '');
  // The socket does not call the lookup function for an IP address.
  if (!allowPrivate && isIP(host) !== 0 && !isPublicAddress(host)) throw new OutgoingError(NO_PUBLIC_ADDRESS);
  return url;
}

/** Descriptions of certificate errors by the codes of OpenSSL and Node. */
const CERTIFICATE_ERRORS: readonly (readonly [code: RegExp, description: string])[] = [
  [/^CERT_HAS_EXPIRED$/, ': it has expired'],
  [/^CERT_NOT_YET_VALID$/, ': it is not valid yet'],
  [/^(?:ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)$/, ': it is for another host'],
  [
    /SELF_SIGNED|^UNABLE_TO_(?:GET_ISSUER|VERIFY_LEAF)|^CERT_UNTRUSTED$/,
    ': it is not signed by an authority that this server trusts',
  ],
  [/CERT|CRL|SIGNATURE|^INVALID_(?:CA|PURPOSE)$|^PATH_LENGTH_EXCEEDED$/, ''],
];

/** Converts any error of a request to an OutgoingError. */
export function toOutgoingError(error: unknown, signal: AbortSignal, timeoutMs: number): OutgoingError {
  if (error instanceof OutgoingError) return error;
  const withMessage = (message: string) => new OutgoingError(message, { cause: error });
  if (signal.aborted) return withMessage(`it did not answer within ${timeoutMs / 1000} s`);
  const code = String((error as NodeJS.ErrnoException).code);
  // Checked first, because a TLS alert of the peer about a certificate has a code of this form too.
  if (/^(?:EPROTO|ERR_SSL_)/.test(code)) return withMessage('the TLS handshake with it failed');
  const certificateError = CERTIFICATE_ERRORS.find(([pattern]) => pattern.test(code));
  return withMessage(certificateError ? `it has no valid certificate${certificateError[1]}` : 'it cannot be reached');
}
