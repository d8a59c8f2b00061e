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
const ROUNDS = 6;

/** What the victim said of each upload before it died: from id to number. */
interface Told {
  readonly begun: Map<string, number>;
  readonly finished: Map<string, number>;
}

let root: string;
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'wharf-kill-'));
});
after(() => rm(root, { recursive: true }));

/** Lets a process push until it acknowledged so many blobs, and kills it some instants later. */
async function pushAndDie(first: number, acknowledged: number): Promise<Told> {
  const told: Told = { begun: new Map(), finished: new Map() };
  const child = spawn(process.execPath, [victim, root, String(first)], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  for await (const line of createInterface({ input: child.stdout })) {
    const [event = '', number, id = ''] = line.split(' ');
    told[event === 'finished' ? 'finished' : 'begun'].set(id, Number(number));
    if (event === 'finished' && told.finished.size === acknowledged)
      setTimeout(() => child.kill('SIGKILL'), Math.random() * 10);
  }
  const [, signal] = await exited;
  assert.equal(signal, 'SIGKILL');
  return told;
}

it('keeps every acknowledged blob and shows no wrong one, however often the process is killed', async () => {
  let unfinished = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const { begun, finished } = await pushAndDie(1 + round * 1_000, 1 + round * 3);
    const blobs = await openFilesystemBlobs(root);

    for (const number of finished.values()) {
      assert.ok(contentOf(number).equals(await pull(blobs, digestOf(contentOf(number)))), `acknowledged ${number}`);
    }

    const listed = await all(blobs.list());
    for (const { digest } of listed) assert.equal(digestOf(await pull(blobs, digest)), digest);
    const files = await readdir(join(root, 'blobs'), { recursive: true, withFileTypes: true });
    assert.equal(files.filter((file) => file.isFile()).length, listed.length, 'nothing half-done among the blobs');

    // What the kill broke off goes on where it stopped; or it was finished and only the news was lost.
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
    // An upload that the kill caught before its name was told is empty.
    for (const { id, size } of await all(blobs.uploads())) {
      assert.equal(size, 0);
      await blobs.cancel(id);
    }
  }
  assert.ok(unfinished > 0, 'at least one kill broke an upload off');
});
