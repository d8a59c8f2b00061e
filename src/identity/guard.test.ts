import assert from 'node:assert/strict';
import dns, { type LookupAddress } from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';
import { type TestContext, test } from 'node:test';
import { OutgoingError, publicLookup } from './guard.ts';

type Answer = Error | readonly string[];

/** Lets every name resolve to the given answers, one after the other. */
function resolveTo(t: TestContext, ...answers: Answer[]): void {
  const fake = (_name: string, _options: object, callback: (error: Error | null, found?: LookupAddress[]) => void) => {
    const answer = answers.shift() ?? assert.fail('resolved once too often');
    if (answer instanceof Error) callback(answer);
    else
      callback(
        null,
        answer.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
      );
  };
  const { mock } = t.mock.method(dns, 'lookup', fake as never);
  syncBuiltinESMExports();
  t.after(() => {
    mock.restore();
    syncBuiltinESMExports();
  });
}

const ask = (all: boolean) =>
  new Promise<unknown>((resolve, reject) => {
    publicLookup('name.example', { all }, (error, found, family) => (error ? reject(error) : resolve([found, family])));
  });

test('public addresses are handed to the socket in the form it asks for', async (t) => {
  resolveTo(t, ['8.8.8.8', '2606:4700::1'], ['8.8.8.8', '2606:4700::1']);
  const both = [
    { address: '8.8.8.8', family: 4 },
    { address: '2606:4700::1', family: 6 },
  ];
  assert.deepEqual(await ask(true), [both, undefined]);
  assert.deepEqual(await ask(false), ['8.8.8.8', 4]);
});

test('one private address among several is enough to refuse', async (t) => {
  const answers = [['8.8.8.8', '127.0.0.1'], ['::ffff:10.0.0.1'], ['fd00::1', '8.8.8.8'], [], new Error('ENOTFOUND')];
  resolveTo(t, ...answers, ...answers);
  for (const all of [true, false]) {
    for (const _ of answers) await assert.rejects(ask(all), new OutgoingError('its host has no public address'));
  }
});

test('a name that first answers publicly gains nothing: each connection asks once and uses what was checked', async (t) => {
  resolveTo(t, ['8.8.8.8'], ['127.0.0.1']);
  assert.deepEqual(await ask(false), ['8.8.8.8', 4]);
  await assert.rejects(ask(false), OutgoingError);
});
