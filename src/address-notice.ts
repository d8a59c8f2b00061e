import { hostname } from 'node:os';
import type { Config } from './config.ts';
import { isLoopback } from './config-values.ts';

/** What to say at the start of a server that other machines can reach and that does not know its URL. */
export function addressNotice(
  config: Pick<Config, 'listen' | 'publicUrl' | 'allowedHosts'>,
  url: string,
): string | undefined {
  if (config.publicUrl !== undefined || isLoopback(config.listen)) return undefined;
  const names = [hostname(), ...config.allowedHosts].join(', ');
  return (
    `WHARF_PUBLIC_URL is not set, and other machines can reach this server. Tokens are issued by and for ${url}: ` +
    'CI systems must request tokens with this audience, and other services cannot verify tokens of this server. ' +
    `Registry logins and links work for clients that use an address of this machine or ${names}. ` +
    'Set WHARF_PUBLIC_URL to the URL that clients use. Tokens that were issued before become invalid then'
  );
}
