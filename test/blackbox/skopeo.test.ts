import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { ImagesService } from '../../src/contract/gen/chainguard/platform/registry/v2/images_pb.js';
import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { TagsService } from '../../src/contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import { callerWith, stranger } from '../support/callers.ts';
import { onEveryDatabase } from '../support/oci-bench.ts';
import { imageOf, indexOf } from '../support/oci-client.ts';
import { readLayout, writeLayout } from '../support/oci-layout.ts';

// Where it is not installed, oci.test.ts does the same with a client of our own.
const skip = spawnSync('skopeo', ['--version']).status === 0 ? false : 'skopeo is not installed';

interface Outcome {
  readonly succeeded: boolean;
  readonly words: string;
}

const skopeo = (...args: string[]): Promise<Outcome> =>
  new Promise((resolve) => {
    execFile('skopeo', ['--insecure-policy', ...args], (error, stdout, stderr) =>
      resolve({ succeeded: error === null, words: stdout + stderr }),
    );
  });

onEveryDatabase('skopeo', (bench) => {
  test('an image for two architectures goes there and back, and the API shows what it is', { skip }, async (t) => {
    const scratch = mkdtempSync(join(tmpdir(), 'wharf-skopeo-'));
    t.after(() => rmSync(scratch, { recursive: true, force: true }));
    const { api, server } = bench;
    const team = await bench.newTeam();
    const images = {
      amd64: imageOf('amd64', gzipSync(Buffer.alloc(300_000, 'amd'))),
      arm64: imageOf('arm64', gzipSync(Buffer.alloc(200_000, 'arm'))),
    };
    const index = indexOf({ amd64: images.amd64.manifest, arm64: images.arm64.manifest });
    const [here, back] = [join(scratch, 'here'), join(scratch, 'back')];
    writeLayout(here, 'v1', index, Object.values(images));
    const image = `docker://${new URL(server.url).host}/${team.name}/app:v1`;
    const push = (token: string) =>
      skopeo('copy', '--all', '--dest-tls-verify=false', `--dest-creds=any:${token}`, `oci:${here}:v1`, image);
    const pull = (token: string) =>
      skopeo('copy', '--all', '--src-tls-verify=false', `--src-creds=any:${token}`, image, `oci:${back}:v1`);

    const pusher = await callerWith(server, 'registry.push', team.uid);
    const pushed = await push(await pusher.token());
    assert.ok(pushed.succeeded, pushed.words);
    const viewer = await callerWith(server, 'viewer', team.uid);
    const pulled = await pull(await viewer.token());
    assert.ok(pulled.succeeded, pulled.words);
    assert.deepEqual(readLayout(back), readLayout(here));

    const [repo] = (await api.call(ReposService.method.listRepos, { uidp: { childrenOf: team.uid } })).repos;
    assert.equal(repo?.name, 'app');
    const { tags } = await api.call(TagsService.method.listTags, { uidp: { childrenOf: repo?.uid ?? '' } });
    assert.deepEqual(
      tags.map(({ name, digest }) => [name, digest]),
      [['v1', index.digest]],
    );
    const place = { repoUid: repo?.uid ?? '', digest: index.digest };
    assert.deepEqual((await api.call(ImagesService.method.getArchitectures, place)).architectures, ['amd64', 'arm64']);
    for (const [architecture, { size }] of Object.entries(images)) {
      assert.equal((await api.call(ImagesService.method.getSize, { ...place, architecture })).size, BigInt(size));
    }

    const nobody = await stranger(server, (await bench.newTeam()).uid);
    const consoleViewer = await callerWith(server, 'console_viewer', team.uid);
    for (const [who, attempt] of [
      ['a viewer who pushes', push(await viewer.token())],
      ['a stranger who pulls', pull(await nobody.token())],
      ['a console viewer who pulls blobs', pull(await consoleViewer.token())],
    ] as const) {
      const { succeeded, words } = await attempt;
      assert.ok(!succeeded && /denied|403/i.test(words), `${who}: ${words}`);
    }
  });
});
