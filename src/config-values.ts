import { readFileSync, statSync } from 'node:fs';
import { isIPv4, isIPv6 } from 'node:net';
import { resolve } from 'node:path';
import type { LogLevel } from './base/log.ts';
import { isUid } from './base/uid.ts';
import { name } from './resource/rules.ts';

/** A setting that makes no sense. The message is one line fit for the person who set it. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

export interface Address {
  /** Empty for every interface, IPv6 and IPv4, whichever the machine has. */
  readonly host: string;
  /** 0 for any free one. */
  readonly port: number;
}

export function address(text: string): Address {
  const wrong = new ConfigError('write host:port, such as 127.0.0.1:8080 or [::1]:8080, or :8080 for every interface');
  const [, ipv6, host, digits] = /^(?:\[([^\]]*)\]|([a-z0-9.-]*)):([0-9]{1,5})$/i.exec(text) ?? [];
  const port = Number(digits ?? -1);
  if (port < 0 || port > 65535) throw wrong;
  if (ipv6 !== undefined && !isIPv6(ipv6)) throw wrong;
  // A host of digits and dots is meant as an IPv4 address, and asking DNS for 127.0.0.300 would only take longer to fail.
  if (host && /^[0-9.]+$/.test(host) && !isIPv4(host)) throw wrong;
  return { host: ipv6 ?? host ?? '', port };
}

/** An absolute path to a directory that exists or can be made later. */
export function directory(text: string): string {
  const found = attempt(() => statSync(text, { throwIfNoEntry: false }));
  if (found && !found.isDirectory()) throw new ConfigError('it is a file; name a directory');
  return resolve(text);
}

/** The content of a file. */
export function file(text: string): string {
  const content = attempt(() => readFileSync(text, 'utf8'));
  if (content.trim() === '') throw new ConfigError('the file is empty');
  return content;
}

function attempt<T>(touch: () => T): T {
  try {
    return touch();
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    throw new ConfigError(code === 'ENOENT' ? 'there is no such file' : `it cannot be read (${code})`);
  }
}

export function databaseUrl(text: string): string {
  if (!/^postgres(?:ql)?:\/\//.test(text) || !URL.canParse(text)) {
    throw new ConfigError('write postgres://user:password@host:5432/database, or leave it unset for SQLite');
  }
  return text;
}

/** A scheme, a host and a port, without a slash at the end. */
export function origin(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isOrigin = url && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`;
  // Docker clients and gRPC know no path before /v2/ or the service name, so a server cannot live below one.
  if (!isOrigin) throw new ConfigError('write scheme and host, such as https://wharf.example.com, without a path');
  return url.origin;
}

/** The uids of some groups. */
export function uids(text: string): readonly string[] {
  const listed = text.split(',').map((part) => part.trim());
  const given = listed.filter((part) => part !== '');
  if (given.every(isUid)) return given;
  throw new ConfigError('write uids separated by commas, as `wharf iam groups list` shows them');
}

export function corsOrigins(text: string): readonly string[] {
  if (text.trim() === '*') return ['*'];
  const listed = text.split(',').map((part) => part.trim());
  try {
    return listed.filter((part) => part !== '').map(origin);
  } catch {
    throw new ConfigError(
      'write * or origins separated by commas, such as https://app.example.com, or nothing for none',
    );
  }
}

export function domain(text: string): string {
  const labels = text.split('.');
  if (text.length > 253 || !labels.every((label) => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(label))) {
    throw new ConfigError('write a domain name in lower case, such as wharfinger.dev');
  }
  return text;
}

const logLevels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent'];

export function logLevel(text: string): LogLevel {
  const found = logLevels.find((level) => level === text.toLowerCase());
  if (!found) throw new ConfigError(`write one of ${logLevels.join(', ')}`);
  return found;
}

export function yesOrNo(text: string): boolean {
  if (!/^(?:true|false)$/i.test(text)) throw new ConfigError('write true or false');
  return text.toLowerCase() === 'true';
}

/** A whole number between `min` and `max`. */
export function count(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^[0-9]{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new ConfigError(`write a whole number from ${min} to ${max}`);
  };
}

/** The 32 bytes of a key, written in hex or base64. */
export function key(text: string): Uint8Array {
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, 'hex');
  if (/^[a-z0-9+/_-]{43}=?$/i.test(text)) return Buffer.from(text, 'base64');
  throw new ConfigError("write 32 bytes in base64 or hex, such as 'openssl rand -base64 32' prints");
}

const organizationRule = name({ min: 3, max: 63 });

export function organization(text: string): string {
  const wrong = organizationRule(text);
  if (wrong) throw new ConfigError(`it ${wrong}`);
  return text;
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Reads `30s`, `1.5h` or `500ms` as milliseconds between `min` and `max`, which are written the same way. */
export function duration(min: string, max: string): (text: string) => number {
  const lowest = milliseconds(min);
  const highest = milliseconds(max);
  return (text) => {
    const value = milliseconds(text);
    if (value >= lowest && value <= highest) return value;
    throw new ConfigError(
      `write a time from ${min} to ${max}, such as 90s or 1h (units: ${Object.keys(unitMs).join(', ')})`,
    );
  };
}

/** Reads times separated by commas, such as `0s, 5s, 5m`. */
export function schedule(text: string): readonly number[] {
  const times = text.split(',').map((part) => milliseconds(part.trim()));
  if (times.length <= 20 && times.every((ms) => ms >= 0 && ms <= 7 * 86_400_000)) return times;
  throw new ConfigError('write at most 20 times of up to 7d, separated by commas, such as 0s,5s,5m');
}

function milliseconds(text: string): number {
  const [, amount, unit = ''] = /^([0-9]{1,9}(?:\.[0-9]{1,3})?)(ms|s|m|h|d)$/.exec(text) ?? [];
  return Math.round(Number(amount) * (unitMs[unit] ?? Number.NaN));
}

const unitBytes: Readonly<Record<string, number>> = { KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };

/** Reads `512MiB` or `1.5GiB` as bytes between `min` and `max`, which are written the same way. */
export function size(min: string, max: string): (text: string) => number {
  const lowest = bytes(min);
  const highest = bytes(max);
  return (text) => {
    const value = bytes(text);
    if (value >= lowest && value <= highest) return value;
    throw new ConfigError(
      `write a size from ${min} to ${max}, such as 500MiB or 10GiB (units: ${Object.keys(unitBytes).join(', ')})`,
    );
  };
}

function bytes(text: string): number {
  const [, amount, unit = ''] = /^([0-9]{1,9}(?:\.[0-9]{1,3})?)(KiB|MiB|GiB|TiB)$/.exec(text) ?? [];
  return Math.round(Number(amount) * (unitBytes[unit] ?? Number.NaN));
}
