import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { all, chunked, digestOf, pull } from './content.testing.ts';
import { contentOf } from './filesystem.killed.testing.ts';
import { openFilesystemBlobs } from './filesystem.ts';

const victim = fileURLToPath(new URL('./filesystem.killed.testing.ts', import.meta.url));
const KILLS = 6;

/** The uploads that the process reported before it was killed: the number of each by its id. */
interface Reported {
  readonly begun: Map<string, number>;
  readonly finished: Map<string, number>;
}

let root: string;
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'wharf-kill-'));
});
after(() => rm(root, { recursive: true }));

/** Starts a process that pushes blobs, and kills it up to 10 ms after it has finished `count` of them. */
async function pushUntilKilled(first: number, count: number): Promise<Reported> {
  const reported: Reported = { begun: new Map(), finished: new Map() };
  const child = spawn(process.execPath, [victim, root, String(first)], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  for await (const line of createInterface({ input: child.stdout })) {
    const [event = '', number, id = ''] = line.split(' ');
    reported[event === 'finished' ? 'finished' : 'begun'].set(id, Number(number));
    if (event === 'finished' && reported.finished.size === count)
      setTimeout(() => child.kill('SIGKILL'), Math.random() * 10);
  }
  const [, signal] = await exited;
  assert.equal(signal, 'SIGKILL');
  return reported;
}

it('keeps every finished blob and shows no incomplete one after kills', async () => {
  let unfinished = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    const { begun, finished } = await pushUntilKilled(1 + kill * 1_000, 1 + kill * 3);
    const blobs = await openFilesystemBlobs(root);

    for (const number of finished.values()) {
      assert.ok(contentOf(number).equals(await pull(blobs, digestOf(contentOf(number)))), `finished ${number}`);
    }

    const listed = await all(blobs.list());
    for (const { digest } of listed) assert.equal(digestOf(await pull(blobs, digest)), digest);
    const files = await readdir(join(root, 'blobs'), { recursive: true, withFileTypes: true });
    assert.equal(files.filter((file) => file.isFile()).length, listed.length, 'no other file is among the blobs');

    // An interrupted upload can be continued, unless it was finished and only the report of it is missing.
    for (const [id, number] of begun) {
      if (finished.has(id)) continue;
      const content = contentOf(number);
      const offset = await blobs.offset(id);
      if (offset !== undefined) {
        unfinished++;
        await blobs.append(id, offset, chunked(content.subarray(offset)));
        await blobs.finish(id, digestOf(content));
      }
      assert.ok(content.equals(await pull(blobs, digestOf(content))), `unfinished ${number}`);
    }
    // An upload whose id was not reported is empty.
    for (const { id, size } of await all(blobs.uploads())) {
      assert.equal(size, 0);
      await blobs.cancel(id);
    }
  }
  assert.ok(unfinished > 0, 'at least one kill interrupted an upload');
});
