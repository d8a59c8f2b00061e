import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { tarGzOf, tarOf, zipOf } from '../../../test/support/archives.ts';
import { UnreadableFileError } from '../archives/unreadable-file-error.ts';
import { readSdist } from './sdist.ts';
import { readWheel } from './wheel.ts';

const directory = mkdtempSync(join(tmpdir(), 'wharf-formats-'));
after(() => rmSync(directory, { recursive: true, force: true }));

function write(name: string, content: Buffer): string {
  const path = join(directory, name);
  writeFileSync(path, content);
  return path;
}

const TIME = Date.UTC(2023, 1, 3, 4, 5, 6);
const METADATA = [
  'Metadata-Version: 2.1',
  'Name: Zope_Interface',
  'Version: 6.0',
  'Summary: Interfaces',
  '  for Python',
  'Keywords: Name: not this',
  '',
  'Name: nor this',
].join('\r\n');

const wheelOf = (metadata: string, time = TIME): Buffer =>
  zipOf([
    { name: 'zope/interface/__init__.py', content: 'x = 1\n'.repeat(1000) },
    { name: 'zope.interface-6.0.dist-info/METADATA', content: metadata, time },
    { name: 'zope.interface-6.0.dist-info/RECORD', content: '' },
  ]);
const WHEEL = 'zope.interface-6.0-cp312-cp312-linux_x86_64.whl';
const SDIST = 'zope_interface-6.0.tar.gz';
const EXPECTED = { name: 'Zope_Interface', version: '6.0', description: 'Interfaces for Python', time: TIME };

const sdistFiles = (folder = 'zope_interface-6.0') => [
  { name: `${folder}/src/a.py`, content: 'x'.repeat(1500) },
  { name: `${folder}/src/zope.egg-info/PKG-INFO`, content: 'Name: other\nVersion: 1\n' },
  { name: `${folder}/PKG-INFO`, content: METADATA, time: TIME },
];

const refuses = (work: Promise<unknown>, says: RegExp): Promise<void> =>
  assert.rejects(work, (error) => error instanceof UnreadableFileError && says.test(error.message));

test('the metadata of a wheel are read', async () => {
  assert.deepEqual(await readWheel(write(WHEEL, wheelOf(METADATA))), EXPECTED);
});

test('the metadata of a source distribution are read, with all forms of long names', async () => {
  assert.deepEqual(await readSdist(write(SDIST, tarGzOf(sdistFiles()))), EXPECTED);
  for (const longNames of ['pax', 'gnu'] as const) {
    assert.deepEqual(await readSdist(write(SDIST, tarGzOf(sdistFiles('f'.repeat(300)), { longNames }))), EXPECTED);
  }
  assert.deepEqual(await readSdist(write(SDIST, tarGzOf(sdistFiles('f'.repeat(95))))), EXPECTED);
  assert.deepEqual(await readSdist(write('zope_interface-6.0.zip', zipOf(sdistFiles()))), EXPECTED);
});

test('placeholder times are ignored', async () => {
  for (const time of [Date.UTC(1980, 0, 1), Date.UTC(2020, 1, 2), Date.UTC(2016, 0, 1)]) {
    assert.equal((await readWheel(write(WHEEL, wheelOf(METADATA, time)))).time, undefined);
  }
});

test('a file that is not a package is refused with a reason', async () => {
  await refuses(readWheel(write(WHEEL, Buffer.from('hello'))), /^is not a zip file, or is damaged: /);
  await refuses(readWheel(write(WHEEL, zipOf([{ name: 'a', content: 'b' }]))), /contains no METADATA$/);
  await refuses(readWheel(write(WHEEL, wheelOf('Version: 1\n'))), /without a Name/);
  await refuses(readWheel(write(WHEEL, wheelOf('Name: zope.interface\n\nVersion: 1'))), /without a Version/);
  await refuses(readWheel(write(WHEEL, wheelOf('Name: requests\nVersion: 1\n'))), /of another package, requests$/);
  await refuses(readSdist(write(SDIST, Buffer.from('hello'))), /^is not a gzip file, or is damaged: /);
  await refuses(readSdist(write(SDIST, gzipSync(Buffer.alloc(2000, 'x')))), /^is not a tar archive, or is damaged$/);
  await refuses(readSdist(write(SDIST, tarGzOf([{ name: 'a/b', content: 'c' }]))), /contains no PKG-INFO$/);
  await assert.rejects(readWheel(join(directory, 'not there.whl')), { code: 'ENOENT' });
  await assert.rejects(readSdist(join(directory, 'not there.tar.gz')), { code: 'ENOENT' });
});

test('a truncated file is refused', async () => {
  const wheel = wheelOf(METADATA);
  await refuses(readWheel(write(WHEEL, wheel.subarray(0, -30))), /damaged/);
  const sdist = tarOf(sdistFiles());
  await refuses(readSdist(write(SDIST, gzipSync(sdist.subarray(0, 700)))), /^is truncated/);
  await refuses(readSdist(write(SDIST, gzipSync(sdist).subarray(0, -100))), /damaged/);
});

test('a wheel with a wrong checksum is refused', async () => {
  const wheel = wheelOf(METADATA);
  const at = wheel.lastIndexOf('zope.interface-6.0.dist-info/METADATA') - 46;
  wheel.writeUInt32LE(1, at + 16);
  await refuses(readWheel(write(WHEEL, wheel)), /METADATA does not match its checksum$/);
});

test('paths outside of the archive are refused or ignored', async () => {
  const climbing = { name: '../../zope.interface.dist-info/METADATA', content: METADATA };
  await refuses(readWheel(write(WHEEL, zipOf([climbing]))), /invalid relative path/);
  await refuses(readSdist(write(SDIST, tarGzOf([{ name: '../../x/PKG-INFO', content: METADATA }]))), /no PKG-INFO/);
});

test('entries that decompress to too much are refused', async () => {
  const zeros = Buffer.alloc(9 * 1024 * 1024);
  const name = 'a.dist-info/METADATA';
  await refuses(readWheel(write(WHEEL, zipOf([{ name, content: zeros }]))), /of more than 8388608 bytes$/);
  await refuses(readWheel(write(WHEEL, zipOf([{ name, content: zeros, statedSize: 10 }]))), /damaged/);
  await refuses(
    readSdist(write(SDIST, tarGzOf([{ name: 'a/PKG-INFO', content: zeros }]))),
    /of more than 8388608 bytes$/,
  );
  const claims = 2 ** 32;
  await refuses(
    readSdist(write(SDIST, tarGzOf([{ name: 'a/big', content: '', statedSize: claims }]))),
    /^is truncated/,
  );
});

test('a corrupted archive is read or refused', async () => {
  const sources = [
    { name: WHEEL, content: wheelOf(METADATA), read: readWheel, pack: (bytes: Buffer) => bytes },
    { name: SDIST, content: tarOf(sdistFiles()), read: readSdist, pack: gzipSync },
    { name: SDIST, content: tarGzOf(sdistFiles()), read: readSdist, pack: (bytes: Buffer) => bytes },
  ];
  const damage = fc.record({
    source: fc.constantFrom(...sources),
    flips: fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { maxLength: 6 }),
    keep: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: 1 }),
  });
  await fc.assert(
    fc.asyncProperty(damage, async ({ source, flips, keep }) => {
      const content = Buffer.from(source.content);
      for (const [at, byte] of flips) content[at % content.length] = byte;
      const path = write(source.name, Buffer.from(source.pack(content.subarray(0, Math.ceil(content.length * keep)))));
      try {
        const { name, version } = await source.read(path);
        assert.ok(name !== '' && version !== '');
      } catch (error) {
        assert.ok(error instanceof UnreadableFileError, String(error));
      }
    }),
    { numRuns: 400 },
  );
});

test('a header of a million lines is read in linear time', { timeout: 20_000 }, async () => {
  const metadata = METADATA.replace('Interfaces', `Interfaces${'\r\n of'.repeat(1_000_000)}`);
  const { description } = await readWheel(write(WHEEL, wheelOf(metadata)));
  assert.equal(description.length, 'Interfaces for Python'.length + 3_000_000);
});

test('a source distribution with an invalid time is read', async () => {
  for (const time of [Buffer.alloc(12, 0xff), Buffer.from('99999999999\0'), Buffer.from('not a time \0')]) {
    const tar = tarOf([{ name: 'zope_interface-6.0/PKG-INFO', content: METADATA }]);
    time.copy(tar, 136);
    // The checksum counts its own eight bytes as spaces.
    tar.fill(' ', 148, 156);
    const sum = tar.subarray(0, 512).reduce((all, byte) => all + byte, 0);
    tar.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
    const { time: found } = await readSdist(write(SDIST, gzipSync(tar)));
    assert.ok(found === undefined || found > TIME, String(found));
  }
});
