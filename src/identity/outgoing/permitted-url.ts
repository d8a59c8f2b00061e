import { isIP } from 'node:net';
import { isPublicAddress } from '../../base/ip-address.ts';
import { isLoopbackHost } from '../../base/issuer-url.ts';

/**
 * A request of ours that failed. The message is fit for whoever named the address: it says what they can mend, and
 * nothing that lets them feel their way around our network. The cause is for the log.
 */
export class OutgoingError extends Error {
  override readonly name = 'OutgoingError';
}

/** The same words for a name that does not exist and one that leads inside, so that nobody can tell them apart. */
export const NO_PUBLIC_ADDRESS = 'its host has no public address';

/** Refuses what others must not make this server connect to. Names are checked when they are resolved (guarded-lookup.ts). */
export function permittedUrl(text: string, allowPrivate: boolean): URL {
  if (!URL.canParse(text)) throw new OutgoingError('its address is not a URL');
  const url = new URL(text);
  const plain = url.protocol === 'http:' && allowPrivate && isLoopbackHost(url.hostname);
  if (url.protocol !== 'https:' && !plain) throw new OutgoingError('its address does not begin with https://');
  if (url.username !== '' || url.password !== '') throw new OutgoingError('its address has a user name');
  const host = url.hostname.replace(/^\[|\]$/g, '');
  // An address needs no resolving, so the socket would never ask the lookup.
  if (!allowPrivate && isIP(host) !== 0 && !isPublicAddress(host)) throw new OutgoingError(NO_PUBLIC_ADDRESS);
  return url;
}

/** What is wrong with a certificate, by the codes that OpenSSL and Node give it. */
const CERTIFICATES: readonly (readonly [code: RegExp, problem: string])[] = [
  [/^CERT_HAS_EXPIRED$/, ': it has expired'],
  [/^CERT_NOT_YET_VALID$/, ': its time is still to come'],
  [/^(?:ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)$/, ': it is for another host'],
  [
    /SELF_SIGNED|^UNABLE_TO_(?:GET_ISSUER|VERIFY_LEAF)|^CERT_UNTRUSTED$/,
    ': nobody whom this server trusts has signed it',
  ],
  [/CERT|CRL|SIGNATURE|^INVALID_(?:CA|PURPOSE)$|^PATH_LENGTH_EXCEEDED$/, ''],
];

/** What went wrong, in the words of an OutgoingError. */
export function explain(error: unknown, signal: AbortSignal, timeoutMs: number): OutgoingError {
  if (error instanceof OutgoingError) return error;
  const because = (reason: string) => new OutgoingError(reason, { cause: error });
  if (signal.aborted) return because(`it did not answer within ${timeoutMs / 1000} s`);
  const code = String((error as NodeJS.ErrnoException).code);
  // First, since alerts of the other side about a certificate have a code of this kind too.
  if (/^(?:EPROTO|ERR_SSL_)/.test(code)) return because('it does not speak TLS as this server does');
  const certificate = CERTIFICATES.find(([known]) => known.test(code));
  return because(certificate ? `it has no valid certificate${certificate[1]}` : 'it cannot be reached');
}
