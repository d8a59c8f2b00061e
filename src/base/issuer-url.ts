import { isIpAddress, isPublicAddress } from './ip-address.ts';

/** Some tokens of Google have the host name as issuer instead of the URL. */
export const canonicalIssuer = (issuer: string): string =>
  issuer === 'accounts.google.com' ? 'https://accounts.google.com' : issuer;

export const isLoopbackHost = (hostname: string): boolean =>
  hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.[0-9]{1,3}){3}$/.test(hostname);

const ISSUER_URL = /^https?:\/\/[^\s/\\?#@]+(\/[^\s\\?#]*)?$/;

/**
 * Says what is wrong with the URL of an OIDC issuer; undefined when it is valid. OpenID Connect Discovery 1.0, section
 * 2, requires a URL with scheme, host, and optionally port and path.
 */
export function issuerProblem(issuer: string): string | undefined {
  const form = issuer.length <= 512 ? ISSUER_URL.exec(issuer) : null;
  if (!form || !URL.canParse(issuer)) {
    return 'must be a URL such as https://issuer.example.com, with no query, fragment or user name';
  }
  const { protocol, hostname, pathname } = new URL(issuer);
  // A pattern for https://host/a/ would match https://host/a/../b, which is another path.
  if (pathname !== (form[1] ?? '/')) return `must have a plain path, such as ${pathname}`;
  if (protocol === 'http:' && !isLoopbackHost(hostname)) return 'must begin with https://';
  return undefined;
}

export const PRIVATE_ISSUER =
  'must not be at a private address; if this server may contact such issuers, set WHARF_ALLOW_PRIVATE_ISSUERS';

/**
 * Whether a host, as in an issuer URL, is this machine or a private IP address. The addresses of other names are checked
 * when the keys of the issuer are fetched.
 */
export function isPrivateHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase();
  if (isIpAddress(host)) return !isPublicAddress(host);
  return host === 'localhost' || host.endsWith('.localhost');
}

/** Whether the host of an issuer is private. False for text that is not an issuer URL. */
export const isPrivateIssuer = (issuer: string): boolean =>
  URL.canParse(issuer) && isPrivateHost(new URL(issuer).hostname);
