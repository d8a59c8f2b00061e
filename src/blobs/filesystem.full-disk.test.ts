import assert from 'node:assert/strict';
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

const child = fileURLToPath(new URL('./filesystem.full-disk.testing.ts', import.meta.url));

/** A file system of its own in a namespace of its own: nobody else sees it, and it ends with the process. */
const inNamespace = ['--map-root-user', '--mount', 'sh', '-c'];
const mounting = 'mount -t tmpfs -o size=4m tmpfs "$1"';

describe('blobs where no space is left', () => {
  let directory: string;
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'wharf-full-'));
  });
  after(() => rm(directory, { recursive: true }));

  const assertSurvived = ({ status, stdout, stderr }: SpawnSyncReturns<string>): void => {
    assert.equal(status, 0, stderr);
    assert.deepEqual(JSON.parse(stdout), {
      refusal: 'there is no space left to store blobs',
      offset: null,
      uploads: 0,
      blobs: 1,
      readable: true,
      next: 'stored',
    });
  };

  it('refuse the upload, free its space and go on, when the disk is full', (t) => {
    const possible = spawnSync('unshare', [...inNamespace, mounting, 'sh', directory]);
    if (possible.status !== 0) return t.skip('this machine does not let tests mount a file system');
    const script = `${mounting} && exec "$2" "$3" "$1"`;
    assertSurvived(
      spawnSync('unshare', [...inNamespace, script, 'sh', directory, process.execPath, child], { encoding: 'utf8' }),
    );
  });

  it('refuse the upload, free its space and go on, when the file may not grow', () => {
    const limited = 'ulimit -f 8192 && exec "$0" "$@"'; // 4 or 8 MiB, as the shell counts
    assertSurvived(spawnSync('sh', ['-c', limited, process.execPath, child, directory], { encoding: 'utf8' }));
  });
});
