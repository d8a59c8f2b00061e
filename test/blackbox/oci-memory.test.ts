import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { get } from 'node:http';
import { test } from 'node:test';
import { mintOwnerToken } from '../../src/identity/owner/owner-key.ts';
import { databases } from '../support/databases.ts';
import { ociClient } from '../support/oci-client.ts';
import { spawnServer } from '../support/process.ts';

const MIB = 1024 * 1024;
/** Large enough to show in the peak memory if the server buffers blobs. */
const BLOB_MIB = 256;
const MAX_GROWTH = 60 * MIB;

const NAME = 'my-org/large';
const skip = existsSync('/proc/self/status') ? false : 'only Linux reports the peak memory of a process';

test('a large blob is streamed and not buffered', { skip, timeout: 240_000 }, async (t) => {
  const dataLocation = await (databases[0] ?? assert.fail()).createDataLocation();
  t.after(() => dataLocation.remove());
  const server = await spawnServer(dataLocation);
  t.after(() => server.kill());
  const authorization = `Bearer ${await mintOwnerToken(dataLocation.dataDir)}`;
  const client = ociClient(server.url, authorization);
  t.after(() => client.close());

  const piece = randomBytes(MIB);
  const hash = createHash('sha256');
  for (let sent = 0; sent < BLOB_MIB; sent++) hash.update(piece);
  const digest = `sha256:${hash.digest('hex')}`;
  async function* pieces() {
    for (let sent = 0; sent < BLOB_MIB; sent++) yield piece;
  }

  const before = peakOf(server.process.pid);
  const pushed = await client.send('POST', `/v2/${NAME}/blobs/uploads/?digest=${digest}`, { body: pieces() });
  assert.equal(pushed.status, 201);
  const length = await countBytes(`${server.url}/v2/${NAME}/blobs/${digest}`, authorization);
  assert.equal(length, BLOB_MIB * MIB);
  const grown = peakOf(server.process.pid) - before;
  assert.ok(grown < MAX_GROWTH, `${Math.round(grown / MIB)} MiB more for a blob of ${BLOB_MIB} MiB`);
});

/** Returns the peak memory of a process. */
function peakOf(pid: number | undefined): number {
  const [, kib] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) * 1024;
}

/** Counts the bytes of a response without buffering them. */
const countBytes = (url: string, authorization: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const request = get(url, { headers: { authorization } }, (res) => {
      let count = 0;
      res.on('data', (chunk: Buffer) => {
        count += chunk.length;
      });
      res.on('end', () => resolve(count));
      res.on('error', reject);
    });
    request.on('error', reject);
  });
