import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { createDiskReserve, freeDiskReserve, reserveIn } from './disk-reserve.ts';

it('reserves disk space that can be freed', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'wharf-reserve-'));
  t.after(() => rmSync(directory, { recursive: true }));
  assert.equal(await freeDiskReserve(directory), false);
  assert.equal(await createDiskReserve(directory), true);
  const { size, blocks, mode, mtimeMs } = statSync(reserveIn(directory));
  assert.ok(size === 20 * 1024 * 1024 && blocks * 512 >= size, 'it takes the space that it reserves');
  assert.equal(mode & 0o777, 0o600);
  assert.equal(await createDiskReserve(directory), true);
  assert.equal(statSync(reserveIn(directory)).mtimeMs, mtimeMs, 'it is made once');
  assert.equal(await freeDiskReserve(directory), true);
  assert.deepEqual(readdirSync(directory), []);
});
