import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unknownVariable } from './known-variables.ts';

test('an unknown variable is named with the setting that is nearest', () => {
  for (const [variable, meant] of [
    ['WHARF_LISTN', 'WHARF_LISTEN'],
    ['WHARF_DATABSE_URL', 'WHARF_DATABASE_URL'],
    ['WHARF_MASTER_KEYFILE', 'WHARF_MASTER_KEY_FILE'],
    ['WHARF_TOKN', 'WHARF_TOKEN'],
  ] as const) {
    const sentence = unknownVariable({ [variable]: 'x', PATH: '/bin' }) ?? '';
    assert.ok(sentence.startsWith(`${variable} is not a setting: did you mean ${meant}?`), sentence);
  }
  assert.match(unknownVariable({ WHARF_SOMETHING_ELSE: 'hunter2' }) ?? '', /WHARF_SOMETHING_ELSE is not.*remove it/);
  assert.doesNotMatch(unknownVariable({ WHARF_SOMETHING_ELSE: 'hunter2' }) ?? '', /hunter2/);
});

test('settings, files of secrets and the variables of clients and workers are known', () => {
  const names = ['LISTEN', 'DATABASE_URL_FILE', 'MASTER_KEY_FILE', 'MASTER_KEY_OLD_FILE', 'CONFIG'];
  const others = ['SERVER', 'TOKEN', 'CA', 'WORKER_PORT', 'WORKER_OPERATIONS_PORT'];
  const env = Object.fromEntries([...names, ...others].map((name) => [`WHARF_${name}`, 'x']));
  assert.equal(unknownVariable(env), undefined);
  // Only secrets can be in files.
  assert.match(unknownVariable({ WHARF_LISTEN_FILE: 'x' }) ?? '', /WHARF_LISTEN_FILE is not a setting/);
});

test('the variables that Kubernetes sets for a Service are ignored', () => {
  for (const service of ['WHARF', 'WHARF_WHARFINGER']) {
    assert.equal(
      unknownVariable({
        [`${service}_SERVICE_HOST`]: '10.0.0.11',
        [`${service}_SERVICE_PORT`]: '8080',
        [`${service}_SERVICE_PORT_HTTP_API`]: '8080',
        [`${service}_PORT`]: 'tcp://10.0.0.11:8080',
        [`${service}_PORT_8080_TCP`]: 'tcp://10.0.0.11:8080',
        [`${service}_PORT_8080_TCP_PROTO`]: 'tcp',
        [`${service}_PORT_8080_TCP_PORT`]: '8080',
        [`${service}_PORT_8080_TCP_ADDR`]: '10.0.0.11',
      }),
      undefined,
    );
  }
  assert.match(unknownVariable({ WHARF_PORT: '8080' }) ?? '', /WHARF_PORT is not a setting/);
});
