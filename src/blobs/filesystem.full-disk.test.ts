import assert from 'node:assert/strict';
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

const child = fileURLToPath(new URL('./filesystem.full-disk.testing.ts', import.meta.url));

/** Mounts a file system in a new namespace, where no other process sees it. It ends with the process. */
const inNamespace = ['--map-root-user', '--mount', 'sh', '-c'];
const mounting = 'mount -t tmpfs -o size=4m tmpfs "$1"';

describe('blobs on a full disk', () => {
  let directory: string;
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'wharf-full-'));
  });
  after(() => rm(directory, { recursive: true }));

  const assertRecovered = ({ status, stdout, stderr }: SpawnSyncReturns<string>): void => {
    assert.equal(status, 0, stderr);
    assert.deepEqual(JSON.parse(stdout), {
      refusal: 'the storage for blobs is full',
      offset: null,
      uploads: 0,
      blobs: 1,
      readable: true,
      next: 'stored',
    });
  };

  it('refuse the upload, free its space and accept others, when the disk is full', (t) => {
    const mounted = spawnSync('unshare', [...inNamespace, mounting, 'sh', directory]);
    if (mounted.status !== 0) return t.skip('this machine does not allow tests to mount a file system');
    const script = `${mounting} && exec "$2" "$3" "$1"`;
    assertRecovered(
      spawnSync('unshare', [...inNamespace, script, 'sh', directory, process.execPath, child], { encoding: 'utf8' }),
    );
  });

  it('refuse the upload, free its space and accept others, when the size of files is limited', () => {
    const limited = 'ulimit -f 8192 && exec "$0" "$@"'; // 4 or 8 MiB, as the shell counts
    assertRecovered(spawnSync('sh', ['-c', limited, process.execPath, child, directory], { encoding: 'utf8' }));
  });
});
