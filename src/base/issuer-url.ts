/** Google signs some tokens with its name instead of its URL. */
export const canonicalIssuer = (issuer: string): string =>
  issuer === 'accounts.google.com' ? 'https://accounts.google.com' : issuer;

export const isLoopbackHost = (hostname: string): boolean =>
  hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.[0-9]{1,3}){3}$/.test(hostname);

const FORM = /^https?:\/\/[^\s/\\?#@]+(\/[^\s\\?#]*)?$/;

/**
 * What keeps a text from being an issuer whose keys can be asked for, or nothing. OpenID Connect Discovery 1.0,
 * section 2: a URL with scheme, host, and optionally port and path.
 */
export function issuerProblem(issuer: string): string | undefined {
  const form = issuer.length <= 512 ? FORM.exec(issuer) : null;
  if (!form || !URL.canParse(issuer)) {
    return 'must be a URL such as https://issuer.example.com, with no query, fragment or user name';
  }
  const { protocol, hostname, pathname } = new URL(issuer);
  // https://host/a/../b looks as if it lay below https://host/a/, also to a pattern, but does not.
  if (pathname !== (form[1] ?? '/')) return `must have a plain path, such as ${pathname}`;
  if (protocol === 'http:' && !isLoopbackHost(hostname)) return 'must begin with https://';
  return undefined;
}
