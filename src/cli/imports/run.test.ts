import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { JsonObject } from '@bufbuild/protobuf';
import { scratch } from '../cli.testing.ts';
import type { Context } from '../context.ts';
import { CliError, ExitCode } from '../exit-codes.ts';
import type { Item } from './item.ts';
import { type Import, runImport } from './run.ts';

type Rec = { id: string; size?: string };

/** Somewhere to print to, and what was printed. */
function screen(options: { output?: 'json' | 'table'; isWatched?: boolean } = {}) {
  const printed = { out: '', err: '' };
  const { output = 'table', isWatched = false } = options;
  const context = {
    output,
    terminal: {
      out(text: string) {
        printed.out += text;
      },
      err(text: string) {
        printed.err += text;
      },
      width: undefined,
      isWatched,
    },
  } as Partial<Context> as Context;
  return { context, printed };
}

async function* items(...given: readonly (string | Rec | Item<Rec>)[]): AsyncGenerator<Item<Rec>> {
  for (const [at, one] of given.entries()) {
    if (typeof one === 'object' && 'origin' in one) yield one;
    else {
      const record = typeof one === 'string' ? { id: one } : one;
      yield { origin: { file: 'f.jsonl', line: at + 1 }, id: record.id, record };
    }
  }
}

const created = async (records: readonly Rec[]): Promise<JsonObject> => ({ created: records.length });
const job = (given: Partial<Import<Rec>>): Import<Rec> => ({ what: 'things', items: items(), send: created, ...given });

/** The failure of an import. */
const failureOf = (running: Promise<void>): Promise<CliError> =>
  running.then(
    () => assert.fail('it went well'),
    (error: unknown) => (error instanceof CliError ? error : assert.fail(String(error))),
  );

test('records go in batches of so many and so much, and the summary counts them', async () => {
  const { context, printed } = screen();
  const sizes: number[] = [];
  const send = async (records: readonly Rec[]): Promise<JsonObject> => {
    sizes.push(records.length);
    return records.length > 1 ? { created: 1, updated: records.length - 1 } : { unchanged: 1 };
  };
  const long = { id: 'c', size: 'x'.repeat(50) };
  await runImport(
    context,
    job({ items: items('a', 'b', long, 'd', 'e', 'f'), send, limits: { records: 2, bytes: 80 } }),
  );
  assert.deepEqual(sizes, [2, 1, 2, 1]);
  assert.match(printed.out, /^things: 2 created, 2 updated, 2 unchanged, 0 refused in \d+\.\d s \(\d+\/s\)\n$/);
  assert.equal(printed.err, '');
});

test('what is refused is listed, on either side, and the rest goes in', async (t) => {
  const { context, printed } = screen();
  const file = join(scratch(t), 'refused.jsonl');
  const damaged = { origin: { file: 'g.yaml' }, id: '', field: '', reason: 'is empty' };
  const send = async (records: readonly Rec[]): Promise<JsonObject> => ({
    created: records.length - 1,
    refusals: [{ index: 1, field: 'size', reason: 'must be small' }],
  });
  const large = { id: 'large', size: 'x'.repeat(200) };
  const failure = await failureOf(
    runImport(
      context,
      job({ items: items('a', damaged, 'b', large), send, refusalsFile: file, limits: { records: 9, bytes: 100 } }),
    ),
  );
  assert.equal(failure.exitCode, ExitCode.invalid);
  assert.equal(failure.message, '3 of the things refused:');
  assert.deepEqual(failure.details, [
    'g.yaml: is empty',
    'f.jsonl:4: large: takes 225 bytes; at most 100 fit into a request',
    'f.jsonl:3: b: size: must be small',
  ]);
  assert.match(printed.out, /1 created, 0 updated, 0 unchanged, 3 refused/);
  const written = readFileSync(file, 'utf8').trimEnd().split('\n');
  assert.deepEqual(written.map((line) => JSON.parse(line))[2], {
    file: 'f.jsonl',
    line: 3,
    id: 'b',
    field: 'size',
    reason: 'must be small',
  });
});

test('of many refusals the first are shown', async () => {
  const refused = Array.from({ length: 30 }, (_, n) => ({ origin: { file: `${n}` }, id: '', field: '', reason: 'no' }));
  const { details } = await failureOf(runImport(screen().context, job({ items: items(...refused) })));
  assert.equal(details.length, 21);
  assert.equal(details.at(-1), 'and 10 more; --refusals <file> lists them all');
});

test('a program gets JSON and nothing else', async () => {
  const { context, printed } = screen({ output: 'json' });
  await runImport(context, job({ items: items('a', 'b') }));
  const { seconds, ...rest } = JSON.parse(printed.out);
  assert.deepEqual(rest, { created: 2, updated: 0, unchanged: 0, refused: 0, refusals: [] });
  assert.ok(seconds >= 0);
  assert.equal(printed.err, '');
});

test('a few batches are under way at a time, but never two with the same record', async () => {
  let underWay = 0;
  let most = 0;
  const log: string[] = [];
  const send = async (records: readonly Rec[]): Promise<JsonObject> => {
    const ids = records.map(({ id }) => id).join();
    most = Math.max(most, ++underWay);
    log.push(`+${ids}`);
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    log.push(`-${ids}`);
    underWay--;
    return { created: records.length };
  };
  const given = ['a', 'b', 'c', 'd', 'd', 'e', 'f'];
  await runImport(screen().context, job({ items: items(...given), send, limits: { records: 1, bytes: 1000 } }));
  assert.equal(most, 3);
  const [first, second] = log.flatMap((line, at) => (line === '+d' ? [at] : []));
  assert.ok(log.indexOf('-d') > (first ?? 0) && log.indexOf('-d') < (second ?? 0), log.join(' '));
});

test('a server that goes away for a while is waited for, one that was never there is not', async () => {
  const unavailable = new CliError(ExitCode.unavailable, 'nobody there');
  let calls = 0;
  const flaky = async (records: readonly Rec[]): Promise<JsonObject> => {
    calls++;
    if (calls === 2 || calls === 3) throw unavailable;
    return created(records);
  };
  const limits = { records: 1, bytes: 1000 };
  const { context, printed } = screen();
  await runImport(context, job({ items: items('a', 'a'), send: flaky, limits, waitsMs: [1, 1] }));
  assert.match(printed.out, /2 created/);
  assert.equal(calls, 4);

  calls = 1;
  const failure = await failureOf(
    runImport(screen().context, job({ items: items('a'), send: flaky, limits, waitsMs: [60_000] })),
  );
  assert.equal(failure, unavailable);
});

test('an import that breaks off says how to go on', async () => {
  const send = async (records: readonly Rec[]): Promise<JsonObject> => {
    if (records.some(({ id }) => id === 'b')) throw new CliError(ExitCode.denied, 'no longer', ['request id: 1']);
    return created(records);
  };
  const limits = { records: 1, bytes: 1000 };
  const failure = await failureOf(runImport(screen().context, job({ items: items('a', 'a', 'b'), send, limits })));
  assert.deepEqual([failure.exitCode, failure.message], [ExitCode.denied, 'no longer']);
  assert.equal(failure.details[0], 'request id: 1');
  assert.match(failure.details[1] ?? '', /^stopped after \d things; run it again to go on/);
});

test('refusals that cannot be written are known before anything is sent', async () => {
  const running = runImport(screen().context, job({ refusalsFile: '/nonexistent/x', send: async () => assert.fail() }));
  assert.equal((await failureOf(running)).exitCode, ExitCode.usage);
});

test('what is refused while another batch fails is still counted and written', async (t) => {
  const refusalsFile = join(scratch(t), 'refused.jsonl');
  const { promise: failed, resolve: fail } = Promise.withResolvers<void>();
  const send = async ([first]: readonly Rec[]): Promise<JsonObject> => {
    if (first?.id === 'b') {
      fail();
      throw new CliError(ExitCode.failure, 'no more');
    }
    // Answered only after the other has failed.
    await failed;
    await new Promise(setImmediate);
    return { refusals: [{ index: 0, reason: 'is late' }] };
  };
  const limits = { records: 1, bytes: 1000 };
  const { context } = screen();
  const failure = await failureOf(
    runImport(context, job({ items: items('a', 'b', 'c'), send, limits, refusalsFile, waitsMs: [] })),
  );
  assert.match(failure.details.join(), /stopped after 1 things/);
  assert.equal(JSON.parse(readFileSync(refusalsFile, 'utf8')).reason, 'is late');
});
