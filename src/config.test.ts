import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ConfigError, flagOf, loadConfig, settings } from './config.ts';

const testData = (name: string): string => fileURLToPath(new URL(`../test/data/tls/${name}`, import.meta.url));
const cert = testData('cert.pem');
const key = testData('key.pem');

/** Returns the error message for these variables. */
function configErrorOf(env: Record<string, string>, flags = {}): string {
  try {
    loadConfig(flags, env);
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.message;
  }
  return assert.fail(`accepted ${JSON.stringify(env)}`);
}

test('settings have defaults', () => {
  assert.deepEqual(loadConfig({}, {}), {
    listen: { host: '127.0.0.1', port: 8080 },
    data: resolve('data'),
    databaseUrl: undefined,
    publicUrl: undefined,
    allowedHosts: [],
    serviceDomain: 'wharfinger.dev',
    logLevel: 'info',
    tls: undefined,
    tracing: undefined,
    tlsReload: 10_000,
    hsts: 365 * 86_400_000,
    masterKey: undefined,
    masterKeyOld: undefined,
    signingKeyRotation: 90 * 24 * 60 * 60 * 1000,
    verifyInterval: Infinity,
    verifyRate: 20 * 1024 * 1024,
    org: 'my-org',
    corsOrigins: ['*'],
    operationsListen: undefined,
    orgMetrics: false,
    maxConnections: 10_000,
    maxConnectionsPerAddress: 5_000,
    unauthenticatedMemory: 16 * 1024 ** 2,
    workers: 1,
    drain: undefined,
    requestTimeout: 30_000,
    allowPrivateIssuers: false,
    maxTokenLifetime: 7 * 24 * 60 * 60 * 1000,
    maxBlob: 100 * 1024 ** 3,
    publicAdvisoryGroups: [],
    requiredTerms: new Map(),
    termsUrls: new Map(),
    pullEvents: true,
    allowInsecureSinks: false,
    deliverySchedule: [0, 5, 300, 1800, 7200, 18_000, 36_000, 36_000].map((seconds) => seconds * 1000),
    deliveryTimeout: 15_000,
    deliveryGiveUp: 5 * 86_400_000,
    newSinkInterval: 10_000,
    sinkRate: 100,
    eventRetention: 30 * 86_400_000,
    identityRate: undefined,
    addressRate: undefined,
    trustedProxies: undefined,
    maxRefreshTokens: 100,
    maxRegistrations: 1_000,
    maxOrgs: 10,
    maxOrgResources: 5_000_000,
    maxOpenUploads: 1_000,
    maxOrgStorage: Infinity,
    backupTo: undefined,
    backupInterval: 86_400_000,
    backupKeep: '7',
  });
});

test('a flag overrides its variable, and an empty value counts as unset', () => {
  assert.equal(loadConfig({ org: 'from-flag' }, { WHARF_ORG: 'from-env' }).org, 'from-flag');
  assert.equal(loadConfig({ org: '' }, { WHARF_ORG: 'from-env' }).org, 'from-env');
  assert.equal(loadConfig({}, { WHARF_DATABASE_URL: '', WHARF_ORG: '' }).databaseUrl, undefined);
});

test('flags are named like their variable and like their setting', () => {
  for (const [name, setting] of Object.entries(settings)) {
    const camelCase = flagOf(setting)
      .slice(2)
      .replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
    assert.equal(camelCase, name);
  }
});

test('values can have several forms', () => {
  const read = (env: Record<string, string>) => loadConfig({}, env);
  assert.deepEqual(read({ WHARF_LISTEN: ':8080' }).listen, { host: '', port: 8080 });
  assert.deepEqual(read({ WHARF_LISTEN: '0.0.0.0:0' }).listen, { host: '0.0.0.0', port: 0 });
  assert.deepEqual(read({ WHARF_LISTEN: '[::1]:8080' }).listen, { host: '::1', port: 8080 });
  assert.deepEqual(read({ WHARF_LISTEN: 'wharf.local:443' }).listen, { host: 'wharf.local', port: 443 });
  assert.equal(read({ WHARF_PUBLIC_URL: 'https://Wharf.example.com:443/' }).publicUrl, 'https://wharf.example.com');
  assert.equal(read({ WHARF_PUBLIC_URL: 'https://example.com/a/wharf/' }).publicUrl, 'https://example.com/a/wharf');
  assert.deepEqual(read({ WHARF_ALLOWED_HOSTS: 'Wharf.Example, *.internal, [::1],10.0.0.1' }).allowedHosts, [
    'wharf.example',
    '*.internal',
    '::1',
    '10.0.0.1',
  ]);
  assert.equal(read({ WHARF_LOG_LEVEL: 'WARN' }).logLevel, 'warn');
  assert.equal(read({ WHARF_REQUEST_TIMEOUT: '1.5m' }).requestTimeout, 90_000);
  assert.equal(read({ WHARF_REQUEST_TIMEOUT: '250ms' }).requestTimeout, 250);
  assert.equal(read({ WHARF_MAX_BLOB: '1.5GiB' }).maxBlob, 1.5 * 1024 ** 3);
  assert.equal(read({}).maxBlob, 100 * 1024 ** 3);
  assert.equal(read({ WHARF_PULL_EVENTS: 'false' }).pullEvents, false);
  assert.equal(read({ WHARF_ALLOW_PRIVATE_ISSUERS: 'true' }).allowPrivateIssuers, true);
  assert.equal(read({ WHARF_ALLOW_PRIVATE_ISSUERS: 'False' }).allowPrivateIssuers, false);
  assert.deepEqual(read({ WHARF_CORS_ORIGINS: '' }).corsOrigins, []);
  assert.deepEqual(read({ WHARF_CORS_ORIGINS: 'https://a.example, http://b.example:3000' }).corsOrigins, [
    'https://a.example',
    'http://b.example:3000',
  ]);
  assert.equal(read({ WHARF_SIGNING_KEY_ROTATION: 'never' }).signingKeyRotation, Infinity);
  assert.equal(read({ WHARF_SIGNING_KEY_ROTATION: '1h' }).signingKeyRotation, 3_600_000);
  const uid = 'a'.repeat(40);
  const listed = read({ WHARF_PUBLIC_ADVISORY_GROUPS: `${uid}, ${uid}/0123456789abcdef` }).publicAdvisoryGroups;
  assert.deepEqual(listed, [uid, `${uid}/0123456789abcdef`]);
  const bytes = Buffer.alloc(32, 7);
  for (const encoding of ['hex', 'base64', 'base64url'] as const) {
    assert.deepEqual(read({ WHARF_MASTER_KEY: bytes.toString(encoding) }).masterKey, bytes);
    assert.deepEqual(read({ WHARF_MASTER_KEY_OLD: bytes.toString(encoding) }).masterKeyOld, bytes);
  }
});

test('the error for an invalid value has the variable, the value and what to write', () => {
  const listen = 'write host:port, such as 127.0.0.1:8080 or [::1]:8080, or :8080 for all interfaces';
  const wrong: Record<string, string[]> = {
    WHARF_LISTEN: ['8080', '127.0.0.1', 'host:', 'host:65536', '127.0.0.300:80', '[127.0.0.1]:80', '::1:80', 'a b:80'],
    WHARF_DATA: [cert, 'a\0b'],
    WHARF_PUBLIC_URL: [
      'wharf.example.com',
      'ftp://wharf.example.com',
      'https://a/b%20c',
      'https://a?b',
      'https://a/b//c',
    ],
    WHARF_ALLOWED_HOSTS: ['*', 'a:80', 'https://a', 'a b', '*.*', 'a/b', '-a', '"a"'],
    WHARF_SERVICE_DOMAIN: ['.', 'Example.com', 'a..b', '-a.dev', 'a b'],
    WHARF_LOG_LEVEL: ['loud'],
    WHARF_TLS_CERT: ['/nowhere/cert.pem', tmpdir()],
    WHARF_ORG: ['ab', 'My-Org', 'a'.repeat(64), 'org\nname'],
    WHARF_CORS_ORIGINS: ['example.com', 'https://a.example,*'],
    WHARF_PUBLIC_ADVISORY_GROUPS: ['my-org', 'a,b'],
    WHARF_ALLOW_PRIVATE_ISSUERS: ['yes', '1', 'true '],
    WHARF_MAX_BLOB: ['100', '1KiB', '1GB', '9999TiB', '-1GiB', 'huge'],
    WHARF_SIGNING_KEY_ROTATION: ['90', '59m', '3651d', '0', 'Never', 'off'],
    WHARF_REQUEST_TIMEOUT: ['30', '0s', '-1s', '2h', '1 s', 'soon', '1e3s'],
  };
  for (const [variable, values] of Object.entries(wrong)) {
    for (const value of values) {
      const line = configErrorOf({ [variable]: value });
      assert.ok(line.startsWith(`${variable}=${JSON.stringify(value)} cannot be used: `), line);
      assert.doesNotMatch(line, /[\n\0]/);
    }
  }
  assert.equal(configErrorOf({ WHARF_LISTEN: '80' }), `WHARF_LISTEN="80" cannot be used: ${listen}`);
  assert.equal(configErrorOf({}, { listen: '80' }), `WHARF_LISTEN="80" (given as --listen) cannot be used: ${listen}`);
  assert.ok(configErrorOf({ WHARF_ORG: 'x'.repeat(10_000) }).length < 300);
});

test('errors do not contain secrets', () => {
  for (const variable of ['WHARF_MASTER_KEY', 'WHARF_MASTER_KEY_OLD', 'WHARF_DATABASE_URL']) {
    const line = configErrorOf({ [variable]: 'mysql://user:hunter2@host/db' });
    assert.ok(line.startsWith(`${variable} cannot be used: write `), line);
    assert.doesNotMatch(line, /hunter2|mysql/);
  }
});

test('TLS needs a certificate and its key', (t) => {
  const { tls } = loadConfig({ tlsKey: key }, { WHARF_TLS_CERT: cert });
  assert.match(tls?.cert ?? '', /BEGIN CERTIFICATE/);
  assert.match(tls?.key ?? '', /PRIVATE KEY/);

  assert.match(configErrorOf({ WHARF_TLS_CERT: cert }), /^WHARF_TLS_CERT is set but WHARF_TLS_KEY is not/);
  assert.match(configErrorOf({ WHARF_TLS_KEY: key }), /^WHARF_TLS_KEY is set but WHARF_TLS_CERT is not/);
  assert.match(configErrorOf({ WHARF_TLS_CERT: key, WHARF_TLS_KEY: key }), /must be a PEM certificate and its PEM key/);

  const directory = mkdtempSync(join(tmpdir(), 'wharf-config-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const empty = join(directory, 'empty.pem');
  writeFileSync(empty, '\n');
  assert.match(configErrorOf({ WHARF_TLS_CERT: empty, WHARF_TLS_KEY: key }), /^WHARF_TLS_CERT=.*: the file is empty$/);

  const other = join(directory, 'other.pem');
  for (const { privateKey } of [generateKeyPairSync('ec', { namedCurve: 'P-256' }), generateKeyPairSync('ed25519')]) {
    writeFileSync(other, privateKey.export({ type: 'pkcs8', format: 'pem' }));
    assert.match(
      configErrorOf({ WHARF_TLS_CERT: cert, WHARF_TLS_KEY: other }),
      /the key belongs to another certificate$/,
    );
  }
});

test('required terms name organizations and documents', () => {
  const org = '5f0c1d6b7a8e4923b1c0d9e8f7a6b5c4d3e2f1a0';
  const parse = (text: string) => loadConfig({}, { WHARF_REQUIRED_TERMS: text }).requiredTerms;
  assert.deepEqual([...parse('')], []);
  assert.deepEqual(
    [...parse(`*=sfdpa.v1, ${org}=skills-tos.v1+guardener-tos.v1, ${org}=skills-tos.v1`)],
    [
      ['*', ['sfdpa.v1']],
      [org, ['skills-tos.v1', 'guardener-tos.v1']],
    ],
  );
  for (const text of ['sfdpa.v1', 'my-org=sfdpa.v1', `${org}/0123456789abcdef=sfdpa.v1`, '*=', '*=other.v1']) {
    assert.throws(() => parse(text), /WHARF_REQUIRED_TERMS/, text);
  }
  const urls = (text: string) => loadConfig({}, { WHARF_TERMS_URLS: text }).termsUrls;
  assert.deepEqual([...urls('sfdpa.v1=https://example.com/?a=b')], [['sfdpa.v1', 'https://example.com/?a=b']]);
  for (const text of ['sfdpa.v1', 'other.v1=https://example.com', 'sfdpa.v1=javascript:alert(1)']) {
    assert.throws(() => urls(text), /WHARF_TERMS_URLS/, text);
  }
});
