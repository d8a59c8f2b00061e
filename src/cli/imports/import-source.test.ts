import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { zipOf } from '../../../test/support/archives.ts';
import { temporaryDirectory } from '../cli.testing.ts';
import { documentsIn } from './documents.ts';
import { openSource } from './import-source.ts';

/** What a source gives, each as `file:line: text` or `file:line! reason`, with paths below the scratch directory. */
async function read(directory: string, names: readonly string[] = [''], limit?: number): Promise<string[]> {
  const source = await openSource(
    names.map((name) => join(directory, name)),
    limit,
  );
  const lines: string[] = [];
  for await (const item of source.items((text) => [{ id: '', record: text }])) {
    const { file, line } = item.location;
    const position = `${file.replace(`${directory}/`, '')}${line === undefined ? '' : `:${line}`}`;
    lines.push('record' in item ? `${position}: ${item.record.trim()}` : `${position}! ${item.reason}`);
  }
  return lines;
}

function files(t: TestContext, content: Readonly<Record<string, string | Buffer>>): string {
  const directory = temporaryDirectory(t);
  for (const [name, bytes] of Object.entries(content)) {
    mkdirSync(join(directory, name, '..'), { recursive: true });
    writeFileSync(join(directory, name), bytes);
  }
  return directory;
}

const LINES = '{"id":1}\n\n{"id":2}\n';

test('a directory is read in the order of names, without hidden and other files', async (t) => {
  const directory = files(t, {
    'b.yaml': 'b: 1',
    'a/z.json': '{\n"z": 1}',
    'a/y.yml': 'y: 1',
    'README.md': '# no',
    '.git/x.yaml': 'x: 1',
  });
  assert.deepEqual(await read(directory), ['a/y.yml: y: 1', 'a/z.json: {\n"z": 1}', 'b.yaml: b: 1']);
});

test('the content decides the format, not the name', async (t) => {
  const directory = files(t, {
    'lines.json': LINES,
    'packed.yaml': gzipSync(LINES),
    'twice.gz': gzipSync(gzipSync('a: 1')),
    'pretty.jsonl': '{\n  "id": 1\n}\n',
    'archive.json': zipOf([
      { name: 'd/', content: '' },
      { name: 'd/one.json', content: '{"one":1}' },
      { name: 'many', content: LINES },
      { name: 'packed', content: gzipSync('{"packed":1}') },
    ]),
    'bom.json': '\ufeff{"id":1}',
    'spaced.json': '\n\n  {"id":1}\n{"id":2}',
  });
  assert.deepEqual(await read(directory), [
    'archive.json!d/one.json:1: {"one":1}',
    'archive.json!many:1: {"id":1}',
    'archive.json!many:3: {"id":2}',
    'archive.json!packed:1: {"packed":1}',
    'bom.json: {"id":1}',
    'lines.json:1: {"id":1}',
    'lines.json:3: {"id":2}',
    'packed.yaml:1: {"id":1}',
    'packed.yaml:3: {"id":2}',
    'pretty.jsonl: {\n  "id": 1\n}',
    'spaced.json:3: {"id":1}',
    'spaced.json:4: {"id":2}',
    'twice.gz: a: 1',
  ]);
});

test('an unreadable file is reported, and the others are read', async (t) => {
  const packed = gzipSync(LINES.repeat(2000));
  const zip = zipOf([
    { name: 'one', content: '{"id":1}' },
    { name: 'two', content: '{"id":2}' },
  ]);
  const directory = files(t, {
    'cut.gz': packed.subarray(0, packed.length - 20),
    'cut.zip': zip.subarray(0, zip.length - 30),
    'empty.json': '',
    'latin.yaml': Buffer.from('note: caf\xe9', 'latin1'),
    'whole.json': '{"id":3}',
  });
  symlinkSync('/etc/hostname', join(directory, 'link.yaml'));
  symlinkSync(directory, join(directory, 'loop'));
  const lines = await read(directory);
  assert.equal(lines[0], 'link.yaml! is not a regular file; links are not followed');
  assert.deepEqual(lines.filter((line) => line.includes('! ')).slice(1), [
    'cut.gz! is damaged: it cannot be decompressed to its end',
    'cut.zip! is a damaged zip archive: End of central directory record signature not found. Either not a zip file, or file is truncated.',
    'empty.json! is empty',
    'latin.yaml! is not UTF-8 text',
  ]);
  assert.equal(lines.at(-1), 'whole.json:1: {"id":3}');
});

test('documents above the limit are refused, also when they are compressed', async (t) => {
  const long = `{"id":"${'x'.repeat(100_000)}"}`;
  const directory = files(t, {
    'line.jsonl': `{"id":1}\n${long}\n{"id":2}\n${long}`,
    'bomb.gz': gzipSync(Buffer.alloc(50_000_000)),
    'bomb.zip': zipOf([{ name: 'a.yaml', content: Buffer.alloc(5_000_000, 'a') }]),
    'large.json': `{\n${' '.repeat(100_000)}}`,
  });
  const reason = 'is larger than 50000 bytes, the maximum of a record';
  assert.deepEqual(await read(directory, [''], 50_000), [
    `bomb.gz! ${reason}`,
    `bomb.zip!a.yaml! ${reason}`,
    `large.json! ${reason}`,
    'line.jsonl:1: {"id":1}',
    `line.jsonl:2! ${reason}`,
    'line.jsonl:3: {"id":2}',
    `line.jsonl:4! ${reason}`,
  ]);
});

test('nested compression is limited', async (t) => {
  const packed = (times: number): Buffer =>
    Array.from({ length: times }).reduce<Buffer>((inner) => gzipSync(inner), Buffer.from('a: 1'));
  const inner = zipOf([{ name: 'a.yaml', content: 'a: 1' }]);
  const directory = files(t, {
    '3.gz': packed(3),
    '4.gz': packed(4),
    '400.gz': packed(400),
    'zip.gz': gzipSync(inner),
    'zip.zip': zipOf([
      { name: 'inner.zip', content: inner },
      { name: 'b.yaml', content: 'b: 1' },
    ]),
  });
  assert.deepEqual(await read(directory), [
    '3.gz: a: 1',
    '4.gz! is compressed more than 3 times',
    '400.gz! is compressed more than 3 times',
    'zip.gz! is a zip archive inside of another file or on standard input; give it as a file',
    'zip.zip!inner.zip! is a zip archive inside of another file or on standard input; give it as a file',
    'zip.zip!b.yaml: b: 1',
  ]);
});

test('a long line in many small chunks is concatenated once', { timeout: 20_000 }, async () => {
  const piece = Buffer.alloc(100, 'x');
  async function* pieces() {
    yield Buffer.from('{"id":"');
    for (let n = 0; n < 100_000; n++) yield piece;
    yield Buffer.from('"}');
  }
  const lengths: unknown[] = [];
  for await (const document of documentsIn('-', pieces(), 2 ** 24))
    lengths.push('text' in document && document.text.length);
  assert.deepEqual(lengths, [10_000_009]);
});

test('any bytes yield documents or reasons, and the stream is closed', async () => {
  const start = fc.constantFrom('', '{', '{}\n', '\x1f\x8b\x08', 'PK\x03\x04', '\n \n', '\ufeff');
  const bytes = fc
    .tuple(start, fc.array(fc.uint8Array({ maxLength: 30 }), { maxLength: 4 }))
    .map(([head, rest]) => [Buffer.from(head, 'latin1'), ...rest.map((one) => Buffer.from(one))]);
  await fc.assert(
    fc.asyncProperty(bytes, fc.integer({ min: 1, max: 60 }), async (chunks, limit) => {
      let isClosed = false;
      async function* stream() {
        try {
          yield* chunks;
        } finally {
          isClosed = true;
        }
      }
      for await (const document of documentsIn('f', stream(), limit)) {
        if ('text' in document) assert.ok(Buffer.byteLength(document.text) <= limit);
        else assert.notEqual(document.reason, '');
      }
      assert.ok(isClosed);
    }),
    { seed: 5, numRuns: 500 },
  );
});

test('several paths, a link on the command line, and a pipe', async (t) => {
  const directory = files(t, { 'a.yaml': 'a: 1', 'other.txt': 'b: 1' });
  symlinkSync(join(directory, 'a.yaml'), join(directory, 'link'));
  assert.deepEqual(await read(directory, ['other.txt', 'link']), ['other.txt: b: 1', 'link: a: 1']);
  await assert.rejects(read(directory, ['missing']), /cannot read .*missing: ENOENT/);
  mkdirSync(join(directory, 'vacant'));
  await assert.rejects(read(directory, ['vacant']), /no files to import in .*vacant: file names must end in \.yaml/);
  execFileSync('mkfifo', [join(directory, 'pipe')]);
  spawn('sh', ['-c', 'printf \'{"id":1}\' > pipe'], { cwd: directory });
  assert.deepEqual(await read(directory, ['pipe']), ['pipe:1: {"id":1}']);
});

test('the source reports its progress', async (t) => {
  const directory = files(t, { 'a.yaml': 'a: 1', 'b.json': LINES });
  const source = await openSource([directory]);
  assert.deepEqual({ ...source.progress }, { read: 0, total: 23 });
  for await (const _ of source.items((text) => [{ id: '', record: text }]));
  assert.equal(source.progress.read, 23);
});
