import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import {
  address,
  ConfigError,
  corsOrigins,
  count,
  databaseUrl,
  directory,
  domain,
  duration,
  file,
  key,
  logLevel,
  organization,
  origin,
  schedule,
  size,
  uids,
  yesOrNo,
} from './config-values.ts';

export { ConfigError } from './config-values.ts';

export interface Setting<T = unknown> {
  readonly variable: `WHARF_${string}`;
  /** What stands for the value in the help, such as `host:port`. */
  readonly value: string;
  readonly meaning: string;
  /** Throws a ConfigError that says what would be right. */
  readonly parse: (text: string) => T;
  readonly default?: string;
  /** Never repeated in an error. */
  readonly secret?: true;
  /** Elsewhere an empty value counts as unset, as container tools like to pass it. */
  readonly mayBeEmpty?: true;
}

/** Every setting there is. The flag is the variable in small letters: WHARF_TLS_CERT is --tls-cert. */
// biome-ignore format: a table
export const settings = {
  listen: { variable: 'WHARF_LISTEN', value: 'host:port', default: '127.0.0.1:8080', parse: address, meaning: 'where to listen' },
  data: { variable: 'WHARF_DATA', value: 'dir', default: './data', parse: directory, meaning: 'the data directory' },
  databaseUrl: { variable: 'WHARF_DATABASE_URL', value: 'url', parse: databaseUrl, secret: true, meaning: 'a PostgreSQL to use instead of SQLite in the data directory' },
  publicUrl: { variable: 'WHARF_PUBLIC_URL', value: 'url', parse: origin, meaning: 'how clients reach this server, unless by the address it listens on' },
  serviceDomain: { variable: 'WHARF_SERVICE_DOMAIN', value: 'name', default: 'wharfinger.dev', parse: domain, meaning: 'the domain that errors name as their source' },
  logLevel: { variable: 'WHARF_LOG_LEVEL', value: 'level', default: 'info', parse: logLevel, meaning: 'debug, info, warn, error or silent' },
  tlsCert: { variable: 'WHARF_TLS_CERT', value: 'file', parse: file, meaning: 'certificate chain (PEM); serves TLS, together with the key' },
  tlsKey: { variable: 'WHARF_TLS_KEY', value: 'file', parse: file, meaning: 'private key (PEM) of the certificate' },
  masterKey: { variable: 'WHARF_MASTER_KEY', value: 'key', parse: key, secret: true, meaning: 'encrypts secrets in the database, instead of a key file in the data directory; prefer the variable, flags show in process lists' },
  org: { variable: 'WHARF_ORG', value: 'name', default: 'my-org', parse: organization, meaning: 'name of the organization that the first start creates' },
  corsOrigins: { variable: 'WHARF_CORS_ORIGINS', value: 'list', default: '*', parse: corsOrigins, mayBeEmpty: true, meaning: 'web origins that may call the API: *, or some separated by commas, or empty for none' },
  workers: { variable: 'WHARF_WORKERS', value: 'number', default: '1', parse: count(1, 64), meaning: 'how many processes share the port' },
  /** In milliseconds. */
  requestTimeout: { variable: 'WHARF_REQUEST_TIMEOUT', value: 'time', default: '30s', parse: duration('1ms', '1h'), meaning: 'the longest time a request may take' },
  allowPrivateIssuers: { variable: 'WHARF_ALLOW_PRIVATE_ISSUERS', value: 'boolean', default: 'false', parse: yesOrNo, meaning: 'whether identities may trust issuers at private addresses, and over http on this machine' },
  /** In bytes. */
  maxBlob: { variable: 'WHARF_MAX_BLOB', value: 'size', default: '100GiB', parse: size('1MiB', '1024TiB'), meaning: 'the largest blob, such as a layer of an image, that can be pushed' },
  publicAdvisoryGroups: { variable: 'WHARF_PUBLIC_ADVISORY_GROUPS', value: 'uids', default: '', parse: uids, mayBeEmpty: true, meaning: 'uids of groups, separated by commas, whose advisory documents and vulnerability metadata anybody may read without a token' },
  pullEvents: { variable: 'WHARF_PULL_EVENTS', value: 'boolean', default: 'true', parse: yesOrNo, meaning: 'whether pulls from the registry are events, as pushes are' },
  allowInsecureSinks: { variable: 'WHARF_ALLOW_INSECURE_SINKS', value: 'boolean', default: 'false', parse: yesOrNo, meaning: 'whether events may be sent to private addresses, and over http on this machine' },
  /** In milliseconds, as the next three. */
  deliverySchedule: { variable: 'WHARF_DELIVERY_SCHEDULE', value: 'times', default: '0s,5s,5m,30m,2h,5h,10h,10h', parse: schedule, meaning: 'how long to wait before each attempt to deliver an event' },
  deliveryTimeout: { variable: 'WHARF_DELIVERY_TIMEOUT', value: 'time', default: '15s', parse: duration('10ms', '5m'), meaning: 'the longest time an attempt to deliver an event may take' },
  deliveryGiveUp: { variable: 'WHARF_DELIVERY_GIVE_UP', value: 'time', default: '5d', parse: duration('1s', '365d'), meaning: 'how long a sink may fail before it is disabled' },
  eventRetention: { variable: 'WHARF_EVENT_RETENTION', value: 'time', default: '30d', parse: duration('2d', '3650d'), meaning: 'how long events that were sent, and the record of it, are kept' },
} as const satisfies Record<string, Setting>;

type Settings = typeof settings;
export type SettingName = keyof Settings;
type Parsed<S extends Setting> = S extends { default: string }
  ? ReturnType<S['parse']>
  : ReturnType<S['parse']> | undefined;
type Values = { readonly [N in SettingName]: Parsed<Settings[N]> };

/** Certificate chain and key as PEM texts, known to fit each other. */
export interface TlsPair {
  readonly cert: string;
  readonly key: string;
}

export interface Config extends Omit<Values, 'tlsCert' | 'tlsKey'> {
  readonly tls: TlsPair | undefined;
}

export type Flags = { readonly [N in SettingName]?: string | undefined };

/** A flag wins over its variable, and both over the default. Throws a ConfigError at the first that makes no sense. */
export function loadConfig(flags: Flags, env: NodeJS.ProcessEnv): Config {
  const values = Object.fromEntries(
    Object.entries(settings).map(([name, setting]) => [name, read(setting, flags[name as SettingName], env)]),
  ) as Values;
  const { tlsCert, tlsKey, ...rest } = values;
  return { ...rest, tls: tlsPair(tlsCert, tlsKey) };
}

/** The flag of a setting: `--tls-cert` for WHARF_TLS_CERT. */
export const flagOf = (setting: Setting): string =>
  `--${setting.variable.slice('WHARF_'.length).toLowerCase().replaceAll('_', '-')}`;

const clientVariables = ['WHARF_SERVER', 'WHARF_TOKEN', 'WHARF_CA'];

/** Variables that look like ours and are not: nearly always a typo. */
export function unknownVariables(env: NodeJS.ProcessEnv): string[] {
  const known = new Set([...clientVariables, ...Object.values(settings).map((setting) => setting.variable)]);
  return Object.keys(env).filter((variable) => variable.startsWith('WHARF_') && !known.has(variable));
}

function read(setting: Setting, flag: string | undefined, env: NodeJS.ProcessEnv): unknown {
  const given = [flag, env[setting.variable]].find((text) => text !== undefined && (text !== '' || setting.mayBeEmpty));
  const text = given ?? setting.default;
  if (text === undefined) return undefined;
  try {
    return setting.parse(text);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const source = given !== undefined && given === flag ? ` (given as ${flagOf(setting)})` : '';
    throw new ConfigError(
      `${setting.variable}${setting.secret ? '' : `=${quote(text)}`}${source} cannot be used: ${error.message}`,
    );
  }
}

/** On one line, and short. */
const quote = (text: string): string => JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text);

function tlsPair(cert: string | undefined, key: string | undefined): TlsPair | undefined {
  if (!cert && !key) return undefined;
  if (!cert || !key) {
    const [given, missing] = cert ? ['WHARF_TLS_CERT', 'WHARF_TLS_KEY'] : ['WHARF_TLS_KEY', 'WHARF_TLS_CERT'];
    throw new ConfigError(`${given} is set but ${missing} is not: TLS needs both`);
  }
  const problem = (text: string): ConfigError =>
    new ConfigError(`WHARF_TLS_CERT and WHARF_TLS_KEY cannot be used: ${text}`);
  let fit: boolean;
  try {
    // OpenSSL takes a key of another type than the certificate's without a word, and fails each handshake later.
    fit = new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
    if (fit) createSecureContext({ cert, key });
  } catch {
    throw problem('they must be a PEM certificate and its PEM key without a password');
  }
  if (!fit) throw problem('the key belongs to another certificate');
  return { cert, key };
}
