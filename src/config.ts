import type { TracingSettings } from './base/tracing.ts';
import {
  ConfigError,
  checkRetention,
  countParser,
  durationParser,
  orUnlimited,
  parseAddress,
  parseBackupTarget,
  parseBaseUrl,
  parseBoolean,
  parseCorsOrigins,
  parseDatabaseUrl,
  parseDirectory,
  parseDomain,
  parseHosts,
  parseKey,
  parseLogLevel,
  parseNetworks,
  parseOrganizationName,
  parseRequiredTerms,
  parseRotation,
  parseSchedule,
  parseTermsUrls,
  parseUids,
  readTextFile,
  sizeParser,
  type TextFile,
} from './config-values.ts';
import {
  fileSource,
  flagSource,
  invalidValue,
  type SettingSource,
  variableSource,
  type WrittenValue,
  writtenValue,
} from './setting-sources.ts';
import type { SettingsFile } from './settings-file.ts';
import { loadTracingSettings } from './tracing-settings.ts';
import { type TlsFiles, tlsPairProblem } from './transport/tls-files.ts';

export { ConfigError } from './config-values.ts';
export { flagOf } from './setting-sources.ts';

export interface Setting<T = unknown> {
  readonly variable: `WHARF_${string}`;
  /** The placeholder of the value in the help, such as `host:port`. `file` and `dir` are paths. */
  readonly value: string;
  readonly description: string;
  /** Throws a ConfigError that says what to write. */
  readonly parse: (text: string) => T;
  readonly default?: string;
  /** Whether errors must not contain the value. The value can also be in a file, which WHARF_<NAME>_FILE names. */
  readonly secret?: true;
  /** Whether a running server applies a change at SIGHUP. All others need a restart. */
  readonly reloadable?: true;
  /**
   * Whether an empty value is valid. It counts as unset otherwise: container tools pass unset variables as empty
   * ones.
   */
  readonly mayBeEmpty?: true;
  /** Whether the settings file may have a list, which is the same as its values separated by commas. */
  readonly list?: true;
}

/** All settings of the server. The flag is the variable in lower case: WHARF_TLS_CERT is --tls-cert. */
// biome-ignore format: a table
export const settings = {
  listen: { variable: 'WHARF_LISTEN', value: 'host:port', default: '127.0.0.1:8080', parse: parseAddress, description: 'the address to listen on' },
  data: { variable: 'WHARF_DATA', value: 'dir', default: './data', parse: parseDirectory, description: 'the data directory' },
  databaseUrl: { variable: 'WHARF_DATABASE_URL', value: 'url', parse: parseDatabaseUrl, secret: true, description: 'a PostgreSQL database to use instead of SQLite in the data directory' },
  publicUrl: { variable: 'WHARF_PUBLIC_URL', value: 'url', parse: parseBaseUrl, description: 'the URL by which clients reach this server, if it is not the address to listen on; with a path if a proxy serves it below one' },
  allowedHosts: { variable: 'WHARF_ALLOWED_HOSTS', value: 'list', default: '', list: true, parse: parseHosts, mayBeEmpty: true, description: 'without a public URL, further host names and addresses, separated by commas, that links to this server may contain if a client uses them' },
  serviceDomain: { variable: 'WHARF_SERVICE_DOMAIN', value: 'name', default: 'wharfinger.dev', parse: parseDomain, description: 'the domain in the ErrorInfo of API errors' },
  logLevel: { variable: 'WHARF_LOG_LEVEL', value: 'level', default: 'info', parse: parseLogLevel, reloadable: true, description: 'the log level: debug, info, warn, error or silent' },
  tlsCert: { variable: 'WHARF_TLS_CERT', value: 'file', parse: readTextFile, reloadable: true, description: 'the certificate chain (PEM); TLS needs it and the private key' },
  tlsKey: { variable: 'WHARF_TLS_KEY', value: 'file', parse: readTextFile, reloadable: true, description: 'the private key (PEM) of the certificate' },
  /** In milliseconds. */
  tlsReload: { variable: 'WHARF_TLS_RELOAD', value: 'time', default: '10s', parse: durationParser('100ms', '1d'), description: 'how often the TLS files are checked for changes' },
  /** In milliseconds. */
  hsts: { variable: 'WHARF_HSTS', value: 'time', default: '365d', parse: durationParser('0s', '3650d'), description: 'with TLS, how long browsers use only https for this host (Strict-Transport-Security); 0s sends no such header' },
  masterKey: { variable: 'WHARF_MASTER_KEY', value: 'key', parse: parseKey, secret: true, description: 'the key that encrypts secrets in the database, instead of a key file in the data directory; prefer the variable, because process lists show flags' },
  masterKeyOld: { variable: 'WHARF_MASTER_KEY_OLD', value: 'key', parse: parseKey, secret: true, description: 'the master key before a rotation, while `wharf keys rotate-master` replaces it' },
  /** In milliseconds. */
  signingKeyRotation: { variable: 'WHARF_SIGNING_KEY_ROTATION', value: 'time', default: '90d', parse: parseRotation, description: 'after how long the signing key of tokens is replaced: a time from 1h to 3650d, or never' },
  org: { variable: 'WHARF_ORG', value: 'name', default: 'my-org', parse: parseOrganizationName, description: 'the name of the organization that the first start creates' },
  corsOrigins: { variable: 'WHARF_CORS_ORIGINS', value: 'list', default: '*', list: true, parse: parseCorsOrigins, mayBeEmpty: true, description: 'the web origins that may call the API: *, or a list separated by commas, or empty for none' },
  operationsListen: { variable: 'WHARF_OPERATIONS_LISTEN', value: 'host:port', parse: parseAddress, description: 'an address of its own for /metrics, /readyz with reasons, and gRPC reflection without a token; plaintext, so keep it inside your network' },
  orgMetrics: { variable: 'WHARF_ORG_METRICS', value: 'boolean', default: 'false', parse: parseBoolean, description: 'whether /metrics has gauges of each organization, at most 500' },
  maxConnections: { variable: 'WHARF_MAX_CONNECTIONS', value: 'number', default: '10000', parse: countParser(10, 1_000_000), description: 'the maximum number of open connections' },
  maxConnectionsPerAddress: { variable: 'WHARF_MAX_CONNECTIONS_PER_ADDRESS', value: 'number', default: '5000', parse: countParser(1, 1_000_000), description: 'the maximum number of open connections of one client address; behind a load balancer all clients may have the same one' },
  /** In bytes. */
  unauthenticatedMemory: { variable: 'WHARF_UNAUTHENTICATED_MEMORY', value: 'size', default: '16MiB', parse: sizeParser('1MiB', '64GiB'), description: 'the maximum memory for requests that are not yet authenticated' },
  workers: { variable: 'WHARF_WORKERS', value: 'number', default: '1', parse: countParser(1, 64), description: 'the number of worker processes' },
  /** In milliseconds; undefined for the default, which depends on the address to listen on. */
  drain: { variable: 'WHARF_DRAIN', value: 'time', parse: durationParser('0s', '1h'), description: 'how long a server that stops goes on serving while /readyz fails, so that load balancers notice; by default 0s if the server listens on this machine only, otherwise 5s' },
  /** In milliseconds. */
  requestTimeout: { variable: 'WHARF_REQUEST_TIMEOUT', value: 'time', default: '30s', parse: durationParser('1ms', '1h'), description: 'the timeout of a request' },
  allowPrivateIssuers: { variable: 'WHARF_ALLOW_PRIVATE_ISSUERS', value: 'boolean', default: 'false', parse: parseBoolean, description: 'whether identities may trust issuers at private addresses, and issuers on this machine by http' },
  /** In milliseconds. At least as long as the tokens of `wharf auth token`. */
  maxTokenLifetime: { variable: 'WHARF_MAX_TOKEN_LIFETIME', value: 'time', default: '7d', parse: durationParser('1d', '3650d'), description: 'the longest lifetime of tokens of other issuers and of static keys; a token that is valid for longer is refused' },
  /** In bytes. */
  maxBlob: { variable: 'WHARF_MAX_BLOB', value: 'size', default: '100GiB', parse: sizeParser('1MiB', '1024TiB'), description: 'the maximum size of a pushed blob, such as an image layer' },
  /** In milliseconds. */
  verifyInterval: { variable: 'WHARF_VERIFY_INTERVAL', value: 'time', default: 'never', parse: parseRotation, description: 'after how long all blobs are read again and compared with their digests: a time from 1h to 3650d, or never' },
  /** In bytes per second. */
  verifyRate: { variable: 'WHARF_VERIFY_RATE', value: 'size', default: '20MiB', parse: sizeParser('64KiB', '1TiB'), description: 'the most bytes per second that WHARF_VERIFY_INTERVAL reads' },
  publicAdvisoryGroups: { variable: 'WHARF_PUBLIC_ADVISORY_GROUPS', value: 'uids', default: '', list: true, parse: parseUids, mayBeEmpty: true, description: 'uids of groups, separated by commas, whose advisory documents and vulnerability metadata can be read without a token' },
  requiredTerms: { variable: 'WHARF_REQUIRED_TERMS', value: 'list', default: '', list: true, parse: parseRequiredTerms, mayBeEmpty: true, description: 'documents that people must accept in an organization before anything else works for them there: `uid=document` or `*=document` for all organizations, separated by commas; several documents of one organization are joined by +' },
  termsUrls: { variable: 'WHARF_TERMS_URLS', value: 'list', default: '', list: true, parse: parseTermsUrls, mayBeEmpty: true, description: 'where people can read the required documents: `document=https://…`, separated by commas' },
  pullEvents: { variable: 'WHARF_PULL_EVENTS', value: 'boolean', default: 'true', parse: parseBoolean, description: 'whether pulls from the registry are events; pushes always are' },
  allowInsecureSinks: { variable: 'WHARF_ALLOW_INSECURE_SINKS', value: 'boolean', default: 'false', parse: parseBoolean, description: 'whether events may be sent to private addresses, and to this machine by http' },
  /** In milliseconds, as the next three. */
  deliverySchedule: { variable: 'WHARF_DELIVERY_SCHEDULE', value: 'times', default: '0s,5s,5m,30m,2h,5h,10h,10h', list: true, parse: parseSchedule, description: 'the delays before the attempts to deliver an event' },
  deliveryTimeout: { variable: 'WHARF_DELIVERY_TIMEOUT', value: 'time', default: '15s', parse: durationParser('10ms', '5m'), description: 'the timeout of an attempt to deliver an event' },
  deliveryGiveUp: { variable: 'WHARF_DELIVERY_GIVE_UP', value: 'time', default: '5d', parse: durationParser('1s', '365d'), description: 'how long a sink can fail before it is disabled' },
  /** In milliseconds. */
  newSinkInterval: { variable: 'WHARF_NEW_SINK_INTERVAL', value: 'time', default: '10s', parse: durationParser('0s', '5m'), description: 'the delay after the first failed request to a sink that has never accepted one; it doubles with each further failure; 0s for none' },
  /** Requests per second. */
  sinkRate: { variable: 'WHARF_SINK_RATE', value: 'number', default: '100', parse: countParser(1, 100_000), description: 'the requests per second that the subscriptions of one organization can cause at one host; more wait' },
  /** In milliseconds. */
  eventRetention: { variable: 'WHARF_EVENT_RETENTION', value: 'time', default: '30d', parse: durationParser('2d', '3650d'), description: 'how long delivered events and their deliveries are kept' },
  /** Requests per second; undefined for the default, which depends on the address to listen on. */
  identityRate: { variable: 'WHARF_IDENTITY_RATE', value: 'number', parse: orUnlimited(countParser(1, 1_000_000)), reloadable: true, description: 'the requests per second that one identity may send to one server process; by default unlimited if the server listens on this machine only, otherwise 2000' },
  addressRate: { variable: 'WHARF_ADDRESS_RATE', value: 'number', parse: orUnlimited(countParser(1, 1_000_000)), reloadable: true, description: 'the requests per second without a valid token that one address may send to one server process; by default unlimited if the server listens on this machine only, otherwise 500' },
  trustedProxies: { variable: 'WHARF_TRUSTED_PROXIES', value: 'networks', default: '', list: true, parse: parseNetworks, mayBeEmpty: true, description: 'addresses and networks, separated by commas, of the proxies whose headers Forwarded and X-Forwarded-For, -Host and -Proto are believed' },
  maxRefreshTokens: { variable: 'WHARF_MAX_REFRESH_TOKENS', value: 'number', default: '100', parse: orUnlimited(countParser(1, 1_000_000)), description: 'the valid refresh tokens of one identity; a further login ends the oldest' },
  maxRegistrations: { variable: 'WHARF_MAX_REGISTRATIONS', value: 'number', default: '1000', parse: orUnlimited(countParser(1, 1_000_000)), description: 'the people who may register in one organization within an hour' },
  maxOrgs: { variable: 'WHARF_MAX_ORGS', value: 'number', default: '10', parse: orUnlimited(countParser(0, 1_000_000)), description: 'the organizations that one identity may create; operators are exempt' },
  maxOrgResources: { variable: 'WHARF_MAX_ORG_RESOURCES', value: 'number', default: '5000000', parse: orUnlimited(countParser(1, 999_999_999)), description: 'the resources of one kind, such as repos, that one organization may have' },
  maxOpenUploads: { variable: 'WHARF_MAX_OPEN_UPLOADS', value: 'number', default: '1000', parse: orUnlimited(countParser(1, 100_000)), description: 'the unfinished blob uploads that one organization may have' },
  /** In bytes. */
  maxOrgStorage: { variable: 'WHARF_MAX_ORG_STORAGE', value: 'size', default: 'unlimited', parse: orUnlimited(sizeParser('1KiB', '1024TiB')), description: 'the size of all blobs, manifests and unfinished uploads of one organization' },
  backupTo: { variable: 'WHARF_BACKUP_TO', value: 'target', parse: parseBackupTarget, description: 'where to create scheduled backups: a directory, or s3://bucket/prefix?region=…&endpoint=…; unset for none' },
  /** In milliseconds. */
  backupInterval: { variable: 'WHARF_BACKUP_INTERVAL', value: 'time', default: '24h', parse: durationParser('1s', '3650d'), description: 'how often a scheduled backup is created' },
  backupKeep: { variable: 'WHARF_BACKUP_KEEP', value: 'retention', default: '7', parse: checkRetention, description: 'which scheduled backups are kept: a number of backups, or an age such as 30d' },
} as const satisfies Record<string, Setting>;

type Settings = typeof settings;
export type SettingName = keyof Settings;
type SecretName = { [N in SettingName]: Settings[N] extends { secret: true } ? N : never }[SettingName];
type Parsed<S extends Setting> = S extends { default: string }
  ? ReturnType<S['parse']>
  : ReturnType<S['parse']> | undefined;
type Values = { readonly [N in SettingName]: Parsed<Settings[N]> };

export interface Config extends Omit<Values, 'tlsCert' | 'tlsKey'> {
  readonly tls: TlsFiles | undefined;
  /** From the variables of OpenTelemetry. */
  readonly tracing: TracingSettings | undefined;
}

/** The values of flags: one for each setting, and one for the file of each secret. */
export type SettingFlags = { readonly [N in SettingName | `${SecretName}File`]?: string | undefined };

/** All settings as they are written, undefined for those that have no value. */
export type WrittenSettings = { readonly [N in SettingName]: WrittenValue | undefined };

export const settingNames = Object.keys(settings) as readonly SettingName[];

/** A flag overrides its variable, both override the settings file, and all override the default. */
export function readSettings(flags: SettingFlags, env: NodeJS.ProcessEnv, file?: SettingsFile): WrittenSettings {
  const sources = sourcesOf(flags, env, file);
  return Object.fromEntries(
    settingNames.map((name) => [name, writtenValue(settings[name], sources)]),
  ) as unknown as WrittenSettings;
}

/** Reads one setting. Throws a ConfigError for an invalid value. */
export function readSetting<N extends SettingName>(
  name: N,
  flags: SettingFlags,
  env: NodeJS.ProcessEnv,
  file?: SettingsFile,
): Values[N] {
  return parseSetting(settings[name], writtenValue(settings[name], sourcesOf(flags, env, file))) as Values[N];
}

const sourcesOf = (flags: SettingFlags, env: NodeJS.ProcessEnv, file: SettingsFile | undefined): SettingSource[] => [
  flagSource(flags),
  variableSource(env),
  ...(file ? [fileSource(file)] : []),
];

/** Returns the values of written settings. Those of traces are only in variables. Throws a ConfigError for the first invalid value. */
export function configOf(written: WrittenSettings, env: NodeJS.ProcessEnv): Config {
  const values = Object.fromEntries(settingNames.map((name) => [name, parseSetting(settings[name], written[name])]));
  const { tlsCert, tlsKey, ...rest } = values as unknown as Values;
  return { ...rest, tls: checkedTlsPair(tlsCert, tlsKey), tracing: loadTracingSettings(env) };
}

/** Reads flags and variables, and no settings file. Throws a ConfigError for the first invalid value. */
export const loadConfig = (flags: SettingFlags, env: NodeJS.ProcessEnv): Config =>
  configOf(readSettings(flags, env), env);

function parseSetting(setting: Setting, written: WrittenValue | undefined): unknown {
  if (written === undefined) return undefined;
  try {
    return setting.parse(written.text);
  } catch (error) {
    throw error instanceof ConfigError ? invalidValue(setting, written, error.message) : error;
  }
}

function checkedTlsPair(cert: TextFile | undefined, key: TextFile | undefined): TlsFiles | undefined {
  if (!cert && !key) return undefined;
  if (!cert || !key) {
    const [given, missing] = cert ? ['WHARF_TLS_CERT', 'WHARF_TLS_KEY'] : ['WHARF_TLS_KEY', 'WHARF_TLS_CERT'];
    throw new ConfigError(`${given} is set but ${missing} is not: TLS needs both`);
  }
  const pair = { cert: cert.text, key: key.text };
  const problem = tlsPairProblem(pair);
  if (problem) throw new ConfigError(`WHARF_TLS_CERT and WHARF_TLS_KEY cannot be used: ${problem}`);
  return { ...pair, certFile: cert.path, keyFile: key.path };
}
