import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { JsonObject } from '@bufbuild/protobuf';
import { temporaryDirectory } from '../cli.testing.ts';
import type { ClientContext } from '../context.ts';
import { CliError, ExitCode } from '../exit-codes.ts';
import type { ImportItem } from './import-item.ts';
import { type ImportJob, runImport } from './run-import.ts';

type Rec = { id: string; size?: string };

/** A context that records what is printed. */
function createScreen(options: { output?: 'json' | 'table'; isInteractive?: boolean } = {}) {
  const printed = { out: '', err: '' };
  const { output = 'table', isInteractive = false } = options;
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
      isInteractive,
    },
  } as Partial<ClientContext> as ClientContext;
  return { context, printed };
}

async function* items(...sources: readonly (string | Rec | ImportItem<Rec>)[]): AsyncGenerator<ImportItem<Rec>> {
  for (const [at, one] of sources.entries()) {
    if (typeof one === 'object' && 'location' in one) yield one;
    else {
      const record = typeof one === 'string' ? { id: one } : one;
      yield { location: { file: 'f.jsonl', line: at + 1 }, id: record.id, record };
    }
  }
}

const created = async (records: readonly Rec[]): Promise<JsonObject> => ({ created: records.length });
const job = (options: Partial<ImportJob<Rec>>): ImportJob<Rec> => ({
  what: 'things',
  items: items(),
  send: created,
  ...options,
});

/** The failure of an import. */
const failureOf = (running: Promise<void>): Promise<CliError> =>
  running.then(
    () => assert.fail('it went well'),
    (error: unknown) => (error instanceof CliError ? error : assert.fail(String(error))),
  );

test('batches are limited by records and bytes, and the summary counts the records', async () => {
  const { context, printed } = createScreen();
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

test('refusals of the client and the server are listed, and the other records are imported', async (t) => {
  const { context, printed } = createScreen();
  const file = join(temporaryDirectory(t), 'refused.jsonl');
  const damaged = { location: { file: 'g.yaml' }, id: '', field: '', reason: 'is empty' };
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
  assert.equal(failure.message, 'refused 3 of the things:');
  assert.deepEqual(failure.details, [
    'g.yaml: is empty',
    'f.jsonl:4: large: has 225 bytes, but a request can have at most 100',
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

test('the first of many refusals are printed', async () => {
  const refused = Array.from({ length: 30 }, (_, n) => ({
    location: { file: `${n}` },
    id: '',
    field: '',
    reason: 'no',
  }));
  const { details } = await failureOf(runImport(createScreen().context, job({ items: items(...refused) })));
  assert.equal(details.length, 21);
  assert.equal(details.at(-1), 'and 10 more; --refusals <file> lists them all');
});

test('JSON output contains nothing else', async () => {
  const { context, printed } = createScreen({ output: 'json' });
  await runImport(context, job({ items: items('a', 'b') }));
  const { seconds, ...rest } = JSON.parse(printed.out);
  assert.deepEqual(rest, { created: 2, updated: 0, unchanged: 0, refused: 0, refusals: [] });
  assert.ok(seconds >= 0);
  assert.equal(printed.err, '');
});

test('a few batches are sent concurrently, but never two with the same record', async () => {
  let inFlight = 0;
  let most = 0;
  const log: string[] = [];
  const send = async (records: readonly Rec[]): Promise<JsonObject> => {
    const ids = records.map(({ id }) => id).join();
    most = Math.max(most, ++inFlight);
    log.push(`+${ids}`);
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    log.push(`-${ids}`);
    inFlight--;
    return { created: records.length };
  };
  const ids = ['a', 'b', 'c', 'd', 'd', 'e', 'f'];
  await runImport(createScreen().context, job({ items: items(...ids), send, limits: { records: 1, bytes: 1000 } }));
  assert.equal(most, 3);
  const [first, second] = log.flatMap((line, at) => (line === '+d' ? [at] : []));
  assert.ok(log.indexOf('-d') > (first ?? 0) && log.indexOf('-d') < (second ?? 0), log.join(' '));
});

test('an unavailable server is retried only after a success', async () => {
  const unavailable = new CliError(ExitCode.unavailable, 'connection refused');
  let calls = 0;
  const flaky = async (records: readonly Rec[]): Promise<JsonObject> => {
    calls++;
    if (calls === 2 || calls === 3) throw unavailable;
    return created(records);
  };
  const limits = { records: 1, bytes: 1000 };
  const { context, printed } = createScreen();
  await runImport(context, job({ items: items('a', 'a'), send: flaky, limits, retryDelaysMs: [1, 1] }));
  assert.match(printed.out, /2 created/);
  assert.equal(calls, 4);

  calls = 1;
  const failure = await failureOf(
    runImport(createScreen().context, job({ items: items('a'), send: flaky, limits, retryDelaysMs: [60_000] })),
  );
  assert.equal(failure, unavailable);
});

test('an interrupted import says how to continue', async () => {
  const send = async (records: readonly Rec[]): Promise<JsonObject> => {
    if (records.some(({ id }) => id === 'b')) throw new CliError(ExitCode.denied, 'no longer', ['request id: 1']);
    return created(records);
  };
  const limits = { records: 1, bytes: 1000 };
  const failure = await failureOf(
    runImport(createScreen().context, job({ items: items('a', 'a', 'b'), send, limits })),
  );
  assert.deepEqual([failure.exitCode, failure.message], [ExitCode.denied, 'no longer']);
  assert.equal(failure.details[0], 'request id: 1');
  assert.match(failure.details[1] ?? '', /^stopped after \d things; run the command again to continue/);
});

test('an unwritable refusals file is an error before anything is sent', async () => {
  const running = runImport(
    createScreen().context,
    job({ refusalsFile: '/nonexistent/x', send: async () => assert.fail() }),
  );
  assert.equal((await failureOf(running)).exitCode, ExitCode.usage);
});

test('refusals are counted and written even when another batch fails', async (t) => {
  const refusalsFile = join(temporaryDirectory(t), 'refused.jsonl');
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
  const { context } = createScreen();
  const failure = await failureOf(
    runImport(context, job({ items: items('a', 'b', 'c'), send, limits, refusalsFile, retryDelaysMs: [] })),
  );
  assert.match(failure.details.join(), /stopped after 1 things/);
  assert.equal(JSON.parse(readFileSync(refusalsFile, 'utf8')).reason, 'is late');
});
