/**
 * Pushes and pulls of blobs, compared with the operations that they need at least: node bench/blobs.ts [MiB] [rounds].
 * All are measured in each round, and the best time of each counts, so other load on the machine has little effect.
 */
import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdtemp, open, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { syncDirectory } from '../src/base/sync-directory.ts';
import { openFilesystemBlobs } from '../src/blobs/filesystem.ts';

const mebibytes = Number(process.argv[2] ?? 256);
const rounds = Number(process.argv[3] ?? 7);
const SMALL_BLOBS = 100;

const root = await mkdtemp(join(tmpdir(), 'wharf-bench-'));
const baselineFile = join(root, 'baseline');
const scratch = join(root, 'scratch');
const blobs = await openFilesystemBlobs(root);

// Chunks of 64 KiB, as a socket delivers them.
const chunks = Array.from({ length: 16 }, () => randomBytes(65_536));
const small = Array.from({ length: SMALL_BLOBS }, () => randomBytes(4_096));
async function* layer() {
  for (let round = 0; round < mebibytes; round++) yield* chunks;
}

async function hashOnly(): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of layer()) hash.update(chunk);
  return `sha256:${hash.digest('hex')}`;
}

async function hashAndWrite(source: AsyncIterable<Uint8Array>, path: string): Promise<void> {
  const hash = createHash('sha256');
  const file = await open(path, 'w');
  for await (const chunk of source) {
    hash.update(chunk);
    await file.write(chunk);
  }
  hash.digest('hex');
  await file.sync();
  await file.close();
}

async function push(source: AsyncIterable<Uint8Array>, digest: string): Promise<void> {
  const id = await blobs.begin();
  await blobs.append(id, 0, source);
  await blobs.finish(id, digest);
}

async function* singleChunk(content: Uint8Array) {
  yield content;
}

async function writeSmallFiles(): Promise<void> {
  for (const content of small) {
    await hashAndWrite(singleChunk(content), scratch);
    await rename(scratch, `${scratch}.done`);
    await syncDirectory(root);
  }
}

async function pushSmallBlobs(): Promise<void> {
  for (const content of small) {
    await push(singleChunk(content), `sha256:${createHash('sha256').update(content).digest('hex')}`);
  }
}

const digest = await hashOnly();
await hashAndWrite(layer(), baselineFile);

const measurements: Record<string, () => Promise<unknown>> = {
  'hash only': hashOnly,
  'hash, write, sync': () => hashAndWrite(layer(), scratch),
  push: () => push(layer(), digest),
  'small: hash, write, sync, rename, sync': writeSmallFiles,
  'small: push': pushSmallBlobs,
  'plain read stream': async () => {
    for await (const _ of createReadStream(baselineFile, { highWaterMark: 1024 * 1024 }));
  },
  'pull as stream': async () => {
    for await (const _ of (await blobs.open(digest)).stream());
  },
  'pull by copyTo': async () => (await blobs.open(digest)).copyTo(async () => {}),
};

const best = new Map<string, number>();
for (let round = 0; round < rounds; round++) {
  for (const [name, run] of Object.entries(measurements)) {
    // Deletes the old file outside of the measured time.
    await rm(scratch, { force: true });
    if (name === 'push') await blobs.remove(digest);
    const start = performance.now();
    await run();
    best.set(name, Math.min(best.get(name) ?? Infinity, performance.now() - start));
  }
}
await rm(root, { recursive: true });

const print = (line: string): boolean => process.stdout.write(`${line}\n`);
const printRatio = (name: string, baseline: string): void => {
  const times = (best.get(baseline) ?? 0) / (best.get(name) ?? 1);
  print(`${name.padEnd(16)} ${times.toFixed(2)} x the speed of: ${baseline}`);
};
for (const [name, milliseconds] of best) {
  const [amount, unit] = name.startsWith('small') ? [SMALL_BLOBS, 'blobs/s'] : [mebibytes, 'MiB/s'];
  print(`${name.padEnd(40)} ${((amount / milliseconds) * 1_000).toFixed(0).padStart(6)} ${unit}`);
}
printRatio('push', 'hash only');
printRatio('push', 'hash, write, sync');
printRatio('small: push', 'small: hash, write, sync, rename, sync');
printRatio('pull as stream', 'plain read stream');
printRatio('pull by copyTo', 'plain read stream');
print(`peak memory      ${Math.round(process.resourceUsage().maxRSS / 1024)} MiB resident`);
