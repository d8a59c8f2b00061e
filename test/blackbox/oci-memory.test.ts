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
/** Enough to fill memory, if anything of it were kept. */
const BLOB_MIB = 256;
const MAY_GROW = 60 * MIB;

const NAME = 'my-org/large';
const skip = existsSync('/proc/self/status') ? false : 'only Linux tells how much memory a process had at most';

test('a large blob passes through in little memory', { skip, timeout: 60_000 }, async (t) => {
  const home = await (databases[0] ?? assert.fail()).home();
  t.after(() => home.remove());
  const server = await spawnServer(home);
  t.after(() => server.kill());
  const authorization = `Bearer ${await mintOwnerToken(home.dataDir)}`;
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
  assert.ok(grown < MAY_GROW, `${Math.round(grown / MIB)} MiB more for a blob of ${BLOB_MIB} MiB`);
});

/** The most memory that a process ever had in use. */
function peakOf(pid: number | undefined): number {
  const [, kib] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) * 1024;
}

/** Not kept, because this process has no memory to spare either. */
const countBytes = (url: string, authorization: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const asked = get(url, { headers: { authorization } }, (res) => {
      let count = 0;
      res.on('data', (chunk: Buffer) => {
        count += chunk.length;
      });
      res.on('end', () => resolve(count));
      res.on('error', reject);
    });
    asked.on('error', reject);
  });
