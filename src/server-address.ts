import { hostname } from 'node:os';
import type { Config } from './config.ts';
import { ConfigError, isLoopback } from './config-values.ts';
import type { Method } from './contract/method.ts';
import { type ClientAddress, createForwarding, peerAddress } from './transport/forwarding.ts';
import { createPathPrefix, type PathPrefix } from './transport/path-prefix.ts';
import { followRequests, type RequestUrl } from './transport/request-url.ts';

type AddressConfig = Pick<Config, 'listen' | 'tls' | 'publicUrl' | 'allowedHosts' | 'trustedProxies'>;

/** The URLs of this server, and who its clients are. */
export interface ServerAddress {
  /** The URL in tokens and events. It never depends on a request. */
  readonly publicUrl: string;
  /** The URL of links in a response. It follows the request if no public URL is configured. */
  readonly requestUrl: RequestUrl;
  readonly isFollowing: boolean;
  /** The URL in the OpenAPI document: a path if other machines use this server and no public URL is configured. */
  readonly documentUrl: string;
  readonly pathPrefix: PathPrefix;
  readonly clientAddress: ClientAddress;
}

export function createServerAddress(config: AddressConfig, port: number, methods: readonly Method[]): ServerAddress {
  const { listen, trustedProxies } = config;
  const publicUrl = config.publicUrl ?? urlOf(config, port);
  const isFollowing = config.publicUrl === undefined;
  const readClientRequest = trustedProxies && createForwarding(trustedProxies);
  return {
    publicUrl,
    requestUrl: isFollowing
      ? followRequests({ fixedUrl: publicUrl, allowedHosts: allowedHostsOf(config), readClientRequest })
      : () => publicUrl,
    isFollowing,
    documentUrl: isFollowing && !isLoopback(listen) ? '/' : publicUrl,
    pathPrefix: createPathPrefix(checkedPrefix(publicUrl, methods)),
    clientAddress: readClientRequest ? (peer, headers) => readClientRequest(peer, headers).address : peerAddress,
  };
}

/** The hosts that links may contain, in addition to the addresses that clients connect to. */
function allowedHostsOf({ listen, allowedHosts }: Pick<Config, 'listen' | 'allowedHosts'>): readonly string[] {
  const local = ['localhost', '127.0.0.1', '::1'];
  const own = isLoopback(listen) ? [] : [hostname(), `${hostname()}.local`];
  return [...local, ...own, ...(listen.host === '' ? [] : [listen.host]), ...allowedHosts];
}

const otherPaths = ['v2', 'docs', 'openapi.json', '.well-known', 'healthz', 'readyz', 'metrics', 'version'];

/** The path of the public URL. Refuses one that begins like a path of this server, because it could not be told apart. */
function checkedPrefix(publicUrl: string, methods: readonly Method[]): string {
  const prefix = new URL(publicUrl).pathname.replace(/\/$/, '');
  const first = prefix.split('/')[1];
  if (first === undefined) return '';
  const taken = new Set(methods.flatMap(({ routes }) => routes.map(({ template }) => template.split('/')[1])));
  if (taken.has(first) || otherPaths.includes(first)) {
    throw new ConfigError(
      `WHARF_PUBLIC_URL="${publicUrl}" cannot be used: the server has paths that begin with /${first}; ` +
        'choose another path, such as /wharf',
    );
  }
  return prefix;
}

/** The URL of this server on this machine. Clients cannot connect to a wildcard address, so it becomes loopback. */
export function urlOf({ listen, tls }: Pick<Config, 'listen'> & Partial<Pick<Config, 'tls'>>, port: number): string {
  const host = { '': '127.0.0.1', '0.0.0.0': '127.0.0.1', '::': '[::1]' }[listen.host] ?? listen.host;
  const bracketed = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
  return `${tls ? 'https' : 'http'}://${bracketed}:${port}`;
}
