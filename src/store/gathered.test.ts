import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { type Asked, gathered } from './gathered.ts';

/** Answers batches when told to, each question with its batch's number. */
function watched() {
  const begun: (PromiseWithResolvers<void> & { readonly questions: string[] })[] = [];
  const time = { now: 0 };
  const answerAll = async (asked: readonly Asked<string, number>[]) => {
    const number = begun.length;
    const one = Promise.withResolvers<void>();
    begun.push({ ...one, questions: asked.map(({ question }) => question) });
    await one.promise;
    for (const { resolve } of asked) resolve(number);
  };
  const { ask, isIdle } = gathered(answerAll, () => time.now);
  return { ask, isIdle, begun, time, questions: () => begun.map(({ questions }) => questions) };
}

test('what comes alone goes at once; what comes while an answer is under way goes together when that ends', async () => {
  const { ask, begun, questions, isIdle } = watched();
  const answers = ['a', 'b', 'c'].map(ask);
  assert.deepEqual(questions(), [['a']]);
  begun[0]?.resolve();
  await turn();
  assert.deepEqual(questions(), [['a'], ['b', 'c']]);
  answers.push(ask('d'));
  begun[1]?.resolve();
  await turn();
  begun[2]?.resolve();
  assert.deepEqual(await Promise.all(answers), [0, 1, 1, 2]);
  await turn();
  assert.ok(isIdle());
});

test('one that hangs holds up nobody for long', async () => {
  const { ask, begun, time, questions } = watched();
  const hanging = ask('hangs');
  const waiting = ask('waits');
  time.now += 30;
  const later = ask('comes later');
  assert.deepEqual(questions(), [['hangs'], ['waits', 'comes later']]);
  begun[1]?.resolve();
  assert.deepEqual(await Promise.all([waiting, later]), [1, 1]);
  begun[0]?.resolve();
  assert.equal(await hanging, 0);
});

test('a failure is that of those who were to be answered together, and of nobody else', async () => {
  const { ask, begun } = watched();
  const [first, ...rest] = ['a', 'b', 'c'].map(ask);
  begun[0]?.resolve();
  await first;
  await turn();
  const last = ask('d');
  begun[1]?.reject(new Error('gone'));
  for (const one of rest) await assert.rejects(one, /gone/);
  await turn();
  begun[2]?.resolve();
  assert.equal(await last, 2);
});

test('a batch has its limit', async () => {
  const { ask, begun, questions } = watched();
  const answers = Array.from({ length: 202 }, (_, at) => ask(String(at)));
  for (let at = 0; at < 4; at++) {
    begun[at]?.resolve();
    await turn();
  }
  assert.deepEqual(
    questions().map(({ length }) => length),
    [1, 100, 100, 1],
  );
  await Promise.all(answers);
});
