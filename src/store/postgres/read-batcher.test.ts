import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { createBatcher } from './read-batcher.ts';

/** Until an answer has been noticed and what waited for it has begun. */
async function turn(): Promise<void> {
  await setImmediate();
  await setImmediate();
}

/** Answers batches when told to, each question with its batch's number. */
function watched() {
  const begun: (PromiseWithResolvers<void> & { readonly questions: string[] })[] = [];
  const time = { now: 0 };
  const answerAll = async (questions: readonly string[]) => {
    const number = begun.length;
    const one = Promise.withResolvers<void>();
    begun.push({ ...one, questions: [...questions] });
    await one.promise;
    return questions.map(() => number);
  };
  const { load: ask, isIdle } = createBatcher(answerAll, () => time.now);
  return { ask, isIdle, begun, time, questions: () => begun.map(({ questions }) => questions) };
}

test('what comes in one turn goes together, and what comes meanwhile when that ends', async () => {
  const { ask, begun, questions, isIdle } = watched();
  const answers = ['a', 'b'].map(ask);
  await turn();
  assert.deepEqual(questions(), [['a', 'b']]);
  answers.push(ask('c'));
  await turn();
  answers.push(ask('d'));
  assert.equal(begun.length, 1);
  begun[0]?.resolve();
  await turn();
  assert.deepEqual(questions(), [
    ['a', 'b'],
    ['c', 'd'],
  ]);
  assert.ok(!isIdle());
  begun[1]?.resolve();
  assert.deepEqual(await Promise.all(answers), [0, 0, 1, 1]);
  await turn();
  assert.ok(isIdle());
});

test('one that hangs holds up nobody for long', async () => {
  const { ask, begun, time, questions } = watched();
  const hanging = ask('hangs');
  await turn();
  const waiting = ask('waits');
  time.now += 30;
  const later = ask('comes later');
  await turn();
  assert.deepEqual(questions(), [['hangs'], ['waits', 'comes later']]);
  begun[1]?.resolve();
  assert.deepEqual(await Promise.all([waiting, later]), [1, 1]);
  begun[0]?.resolve();
  assert.equal(await hanging, 0);
});

test('a failure is that of those who were to be answered together, and of nobody else', async () => {
  const { ask, begun } = watched();
  const asked = ['a', 'b'].map(ask);
  await turn();
  const last = ask('c');
  begun[0]?.reject(new Error('gone'));
  for (const one of asked) await assert.rejects(one, /gone/);
  await turn();
  begun[1]?.resolve();
  assert.equal(await last, 1);
});

test('a batch has its limit', async () => {
  const { ask, begun, questions } = watched();
  const answers = Array.from({ length: 202 }, (_, at) => ask(String(at)));
  for (let at = 0; at < 3; at++) {
    await turn();
    begun[at]?.resolve();
  }
  assert.deepEqual(
    questions().map(({ length }) => length),
    [100, 100, 2],
  );
  await Promise.all(answers);
});
