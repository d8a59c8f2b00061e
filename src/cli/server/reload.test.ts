import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pollUntil } from '../../../test/support/poll-until.ts';
import { createLogger } from '../../base/log.ts';
import { type Config, ConfigError, loadConfig } from '../../config.ts';
import { createReload } from './reload.ts';

const pair = (cert: string) => ({ cert, key: 'secret key', certFile: 'cert.pem', keyFile: 'key.pem' });

function createFixture(config: Config) {
  const lines: Record<string, unknown>[] = [];
  const applied: Config[] = [];
  let load = async (): Promise<Config> => config;
  const reload = createReload({
    config,
    load: () => load(),
    apply: (next) => applied.push(next),
    log: createLogger({ level: 'info', destination: { write: (line) => lines.push(JSON.parse(line)) } }),
  });
  /** Reloads with another configuration, and returns what was logged. */
  const reloadWith = async (next: () => Promise<Config>): Promise<Record<string, unknown>[]> => {
    load = next;
    lines.length = 0;
    reload();
    await pollUntil(
      async () => lines.length,
      (count) => count > 0,
    );
    return lines.map(({ level, changed, problem, message }) => ({ level, changed, problem, message }));
  };
  return { reloadWith, applied };
}

test('reloadable settings are applied, and others are named until the restart', async () => {
  const config = { ...loadConfig({}, {}), tls: pair('old') };
  const { reloadWith, applied } = createFixture(config);
  const next = { ...config, logLevel: 'debug' as const, identityRate: 5, workers: 4, tls: pair('new') };
  const needRestart = {
    level: 'warn',
    changed: ['WHARF_WORKERS'],
    problem: undefined,
    message: 'changed settings that need a restart keep their values',
  };
  const reloaded = (changed: string[]) => ({
    ...{ level: 'info', changed, problem: undefined, message: 'reloaded the settings' },
  });
  assert.deepEqual(await reloadWith(async () => next), [
    reloaded(['WHARF_LOG_LEVEL', 'WHARF_IDENTITY_RATE', 'WHARF_TLS_CERT, WHARF_TLS_KEY']),
    needRestart,
  ]);
  assert.deepEqual(applied, [{ ...next, workers: 1 }]);
  assert.deepEqual(await reloadWith(async () => next), [reloaded([]), needRestart]);
});

test('TLS cannot be turned on or off without a restart', async () => {
  const config = loadConfig({}, {});
  const { reloadWith, applied } = createFixture(config);
  const [, warning] = await reloadWith(async () => ({ ...config, tls: pair('new') }));
  assert.deepEqual(warning?.changed, ['WHARF_TLS_CERT, WHARF_TLS_KEY']);
  assert.equal(applied[0]?.tls, undefined);
});

test('an invalid setting changes nothing, and the next reload works', async () => {
  const config = loadConfig({}, {});
  const { reloadWith, applied } = createFixture(config);
  const [error] = await reloadWith(async () => {
    throw new ConfigError('WHARF_WORKERS="x" cannot be used');
  });
  assert.deepEqual([error?.level, error?.problem], ['error', 'WHARF_WORKERS="x" cannot be used']);
  assert.deepEqual(applied, []);
  const [next] = await reloadWith(async () => ({ ...config, logLevel: 'warn' }));
  assert.deepEqual(next?.changed, ['WHARF_LOG_LEVEL']);
});
