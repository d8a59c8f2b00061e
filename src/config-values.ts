import { readFileSync, statSync } from 'node:fs';
import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { resolve } from 'node:path';
import type { LogLevel } from './base/log.ts';
import { type RequiredTerms, TERMS_DOCUMENT_IDS } from './base/terms.ts';
import { isUid, parentOf, ROOT, type Uid } from './base/uid.ts';
import { name } from './resource/rules.ts';
import { parseS3Location } from './s3/location.ts';

/** An invalid value of a setting. The message is one line that says what to write. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

export interface Address {
  /** Empty for all interfaces of the machine, IPv6 and IPv4. */
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
}

export function parseAddress(text: string): Address {
  const problem = new ConfigError('write host:port, such as 127.0.0.1:8080 or [::1]:8080, or :8080 for all interfaces');
  const [, ipv6, host, digits] = /^(?:\[([^\]]*)\]|([a-z0-9.-]*)):([0-9]{1,5})$/i.exec(text) ?? [];
  const port = Number(digits ?? -1);
  if (port < 0 || port > 65535) throw problem;
  if (ipv6 !== undefined && !isIPv6(ipv6)) throw problem;
  // A host of digits and dots must be an IPv4 address. A DNS query for 127.0.0.300 would only fail later.
  if (host && /^[0-9.]+$/.test(host) && !isIPv4(host)) throw problem;
  return { host: ipv6 ?? host ?? '', port };
}

/** Whether only this machine can reach an address to listen on. */
export const isLoopback = ({ host }: Address): boolean => host === 'localhost' || host === '::1' || /^127\./.test(host);

/** Returns the absolute path of a directory, which need not exist. */
export function parseDirectory(text: string): string {
  const existing = readOrExplain(() => statSync(text, { throwIfNoEntry: false }));
  if (existing && !existing.isDirectory()) throw new ConfigError('it is a file: write the path of a directory');
  return resolve(text);
}

export function readFileContent(path: string): string {
  const content = readOrExplain(() => readFileSync(path, 'utf8'));
  if (content.trim() === '') throw new ConfigError('the file is empty');
  return content;
}

/** Reads a file of limited size. Anything but a file, such as a pipe, could block the start. */
export function readRegularFile(path: string, maxBytes: number): string {
  return readOrExplain(() => {
    const stats = statSync(path);
    if (!stats.isFile()) throw new ConfigError('it is not a file');
    if (stats.size > maxBytes) throw new ConfigError(`the file is larger than ${maxBytes / 1024} KiB`);
    return readFileSync(path, 'utf8');
  });
}

export interface TextFile {
  /** Absolute. */
  readonly path: string;
  readonly text: string;
}

export const readTextFile = (path: string): TextFile => ({ path: resolve(path), text: readFileContent(path) });

/** Replaces errors of the file system by a ConfigError. */
function readOrExplain<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    const code = (error as NodeJS.ErrnoException).code;
    throw new ConfigError(code === 'ENOENT' ? 'the file does not exist' : `it cannot be read (${code})`);
  }
}

export function parseDatabaseUrl(text: string): string {
  if (!/^postgres(?:ql)?:\/\//.test(text) || !URL.canParse(text)) {
    throw new ConfigError('write postgres://user:password@host:5432/database, or leave it unset for SQLite');
  }
  return text;
}

/** Returns the scheme, host and port of a URL, without a slash at the end. */
export function parseOrigin(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isOrigin = url && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`;
  if (!isOrigin) throw new ConfigError('write scheme and host, such as https://wharf.example.com, without a path');
  return url.origin;
}

/** Returns the URL of a server, which may have a path, without a slash at the end. */
export function parseBaseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const path = url?.pathname.replace(/\/$/, '') ?? '';
  const isBase =
    url && /^https?:$/.test(url.protocol) && [url.origin + path, `${url.origin}${path}/`].includes(url.href);
  // A path of other characters would need escapes, which proxies and clients write in different ways.
  if (!isBase || !/^(?:\/[a-z0-9._~-]+)*$/i.test(path)) {
    throw new ConfigError(
      'write scheme and host, such as https://wharf.example.com, and the path if a proxy serves it below one, ' +
        'such as https://example.com/wharf',
    );
  }
  return url.origin + path;
}

/** Parses host names and addresses without ports, such as `wharf.example.com, *.internal, 192.0.2.1`. */
export function parseHosts(text: string): readonly string[] {
  const hosts = splitList(text.toLowerCase()).map((host) => host.replace(/^\[(.*)\]$/, '$1'));
  const isHost = (host: string): boolean =>
    isIPv6(host) || /^(?:\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/.test(host);
  if (hosts.every(isHost)) return hosts;
  throw new ConfigError(
    'write host names and addresses without ports, separated by commas, such as wharf.example.com or *.example.com',
  );
}

export function parseUids(text: string): readonly Uid[] {
  const uids = splitList(text);
  if (uids.every(isUid)) return uids;
  throw new ConfigError('write uids separated by commas, as `wharf iam groups list` shows them');
}

const KNOWN_DOCUMENTS = `the documents are ${TERMS_DOCUMENT_IDS.join(', ')}`;

/** Parses `<uid of an organization or *>=<document>+<document>`, several of them separated by commas. */
export function parseRequiredTerms(text: string): RequiredTerms {
  const required = new Map<string, readonly string[]>();
  for (const entry of splitList(text)) {
    const [, organization = '', joined = ''] = /^([^=]*)=(.*)$/.exec(entry) ?? [];
    const documents = joined.split('+').map((id) => id.trim());
    if (organization !== '*' && !(isUid(organization) && parentOf(organization) === ROOT)) {
      throw new ConfigError(
        'write the uid of an organization or *, then = and a document, such as *=sfdpa.v1; `wharf iam groups list` shows uids',
      );
    }
    const unknown = documents.find((id) => !TERMS_DOCUMENT_IDS.includes(id));
    if (unknown !== undefined) throw new ConfigError(`there is no document ${unknown}; ${KNOWN_DOCUMENTS}`);
    required.set(organization, [...new Set([...(required.get(organization) ?? []), ...documents])]);
  }
  return required;
}

/** Parses `<document>=<URL>`, several of them separated by commas. */
export function parseTermsUrls(text: string): ReadonlyMap<string, string> {
  const urls = new Map<string, string>();
  for (const entry of splitList(text)) {
    const [, id = '', url = ''] = /^([^=]*)=(.*)$/.exec(entry) ?? [];
    if (!TERMS_DOCUMENT_IDS.includes(id)) {
      throw new ConfigError(`write a document, then = and its URL, such as sfdpa.v1=https://…; ${KNOWN_DOCUMENTS}`);
    }
    if (!/^https?:$/.test(URL.parse(url)?.protocol ?? '')) {
      throw new ConfigError(`write the http or https URL of ${id}, such as ${id}=https://example.com/terms`);
    }
    urls.set(id, url);
  }
  return urls;
}

/** Parses addresses and networks, such as `10.0.0.0/8, 2001:db8::1`. Returns undefined for none. */
export function parseNetworks(text: string): BlockList | undefined {
  const networks = splitList(text);
  if (networks.length === 0) return undefined;
  const list = new BlockList();
  for (const network of networks) {
    const [, address = '', digits] = /^([0-9a-f:.]+)(?:\/([0-9]{1,3}))?$/i.exec(network) ?? [];
    const bits = isIPv4(address) ? 32 : isIPv6(address) ? 128 : -1;
    const prefix = Number(digits ?? bits);
    if (prefix > bits) {
      throw new ConfigError('write addresses and networks separated by commas, such as 10.0.0.0/8,2001:db8::1');
    }
    list.addSubnet(address, prefix, bits === 32 ? 'ipv4' : 'ipv6');
  }
  return list;
}

export function parseCorsOrigins(text: string): readonly string[] {
  if (text.trim() === '*') return ['*'];
  try {
    return splitList(text).map(parseOrigin);
  } catch {
    throw new ConfigError(
      'write * or origins separated by commas, such as https://app.example.com, or an empty value for none',
    );
  }
}

const splitList = (text: string): string[] =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');

export function parseDomain(text: string): string {
  const labels = text.split('.');
  if (text.length > 253 || !labels.every((label) => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(label))) {
    throw new ConfigError('write a domain name in lower case, such as wharfinger.dev');
  }
  return text;
}

const logLevels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent'];

export function parseLogLevel(text: string): LogLevel {
  const level = logLevels.find((known) => known === text.toLowerCase());
  if (!level) throw new ConfigError(`write one of ${logLevels.join(', ')}`);
  return level;
}

export function parseBoolean(text: string): boolean {
  if (!/^(?:true|false)$/i.test(text)) throw new ConfigError('write true or false');
  return text.toLowerCase() === 'true';
}

/** Returns a parser of whole numbers from `min` to `max`. */
export function countParser(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^[0-9]{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new ConfigError(`write a whole number from ${min} to ${max}`);
  };
}

/** The value of a setting that has no limit. */
export const UNLIMITED = 'unlimited';

/** Returns a parser that also accepts `unlimited`, which is Infinity. */
export const orUnlimited =
  (parse: (text: string) => number): ((text: string) => number) =>
  (text) => {
    if (text.toLowerCase() === UNLIMITED) return Infinity;
    try {
      return parse(text);
    } catch (error) {
      throw error instanceof ConfigError ? new ConfigError(`${error.message}, or ${UNLIMITED}`) : error;
    }
  };

/** Returns the 32 bytes of a key in hex or base64. */
export function parseKey(text: string): Uint8Array {
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, 'hex');
  if (/^[a-z0-9+/_-]{43}=?$/i.test(text)) return Buffer.from(text, 'base64');
  throw new ConfigError("write 32 bytes in base64 or hex, such as the output of 'openssl rand -base64 32'");
}

const organizationRule = name({ min: 3, max: 63 });

export function parseOrganizationName(text: string): string {
  const problem = organizationRule(text);
  if (problem) throw new ConfigError(`it ${problem}`);
  return text;
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Returns a parser of durations from `min` to `max`, such as `30s`, `1.5h` or `500ms`, in milliseconds. */
export function durationParser(min: string, max: string): (text: string) => number {
  const lowest = parseMilliseconds(min);
  const highest = parseMilliseconds(max);
  return (text) => {
    const value = parseMilliseconds(text);
    if (value >= lowest && value <= highest) return value;
    throw new ConfigError(
      `write a duration from ${min} to ${max}, such as 90s or 1h (units: ${Object.keys(unitMs).join(', ')})`,
    );
  };
}

const parseRotationTime = durationParser('1h', '3650d');

/** Parses a duration, or `never`, which is Infinity. */
export function parseRotation(text: string): number {
  if (text === 'never') return Infinity;
  try {
    return parseRotationTime(text);
  } catch {
    throw new ConfigError('write a duration from 1h to 3650d, such as 90d, or never');
  }
}

const parseAge = durationParser('1s', '36500d');

/** Parses what to keep of a series: the newest ones, such as `7`, or those of a time, such as `30d`. */
export function parseRetention(text: string): { readonly count: number } | { readonly ageMs: number } {
  if (/^[1-9][0-9]{0,5}$/.test(text)) return { count: Number(text) };
  try {
    return { ageMs: parseAge(text) };
  } catch {
    throw new ConfigError('write a number of backups, such as 7, or an age, such as 30d');
  }
}

/** Checks a retention and returns it as it is written, because a command gets it as an argument. */
export function checkRetention(text: string): string {
  parseRetention(text);
  return text;
}

/** Checks the place of backups and returns it as it is written. */
export function parseBackupTarget(text: string): string {
  if (!/^[a-z][a-z0-9+.-]+:\/\//i.test(text)) return resolve(text);
  try {
    parseS3Location(text);
    return text;
  } catch (error) {
    throw new ConfigError(`write a directory or an S3 location: ${(error as Error).message}`);
  }
}

/** Parses durations separated by commas, such as `0s, 5s, 5m`. */
export function parseSchedule(text: string): readonly number[] {
  const times = text.split(',').map((part) => parseMilliseconds(part.trim()));
  if (times.length <= 20 && times.every((ms) => ms >= 0 && ms <= 7 * 86_400_000)) return times;
  throw new ConfigError('write at most 20 durations of up to 7d, separated by commas, such as 0s,5s,5m');
}

function parseMilliseconds(text: string): number {
  const [, amount, unit = ''] = /^([0-9]{1,9}(?:\.[0-9]{1,3})?)(ms|s|m|h|d)$/.exec(text) ?? [];
  return Math.round(Number(amount) * (unitMs[unit] ?? Number.NaN));
}

const unitBytes: Readonly<Record<string, number>> = { KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };

/** Returns a parser of sizes from `min` to `max`, such as `512MiB` or `1.5GiB`, in bytes. */
export function sizeParser(min: string, max: string): (text: string) => number {
  const lowest = parseBytes(min);
  const highest = parseBytes(max);
  return (text) => {
    const value = parseBytes(text);
    if (value >= lowest && value <= highest) return value;
    throw new ConfigError(
      `write a size from ${min} to ${max}, such as 500MiB or 10GiB (units: ${Object.keys(unitBytes).join(', ')})`,
    );
  };
}

function parseBytes(text: string): number {
  const [, amount, unit = ''] = /^([0-9]{1,9}(?:\.[0-9]{1,3})?)(KiB|MiB|GiB|TiB)$/.exec(text) ?? [];
  return Math.round(Number(amount) * (unitBytes[unit] ?? Number.NaN));
}
