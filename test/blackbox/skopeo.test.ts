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
import { callerWithoutRole, callerWithRole } from '../support/callers.ts';
import { buildImage, buildIndex } from '../support/oci-client.ts';
import { onEveryDatabase } from '../support/oci-fixture.ts';
import { readLayout, writeLayout } from '../support/oci-layout.ts';

// oci.test.ts tests the same without skopeo.
const skip = spawnSync('skopeo', ['--version']).status === 0 ? false : 'skopeo is not installed';

interface Outcome {
  readonly succeeded: boolean;
  readonly output: string;
}

const skopeo = (...args: string[]): Promise<Outcome> =>
  new Promise((resolve) => {
    execFile('skopeo', ['--insecure-policy', ...args], (error, stdout, stderr) =>
      resolve({ succeeded: error === null, output: stdout + stderr }),
    );
  });

onEveryDatabase('skopeo', (fixture) => {
  test('an image for two architectures is pushed and pulled unchanged, and the API describes it', {
    skip,
  }, async (t) => {
    const scratch = mkdtempSync(join(tmpdir(), 'wharf-skopeo-'));
    t.after(() => rmSync(scratch, { recursive: true, force: true }));
    const { api, server } = fixture;
    const team = await fixture.newTeam();
    const images = {
      amd64: buildImage('amd64', gzipSync(Buffer.alloc(300_000, 'amd'))),
      arm64: buildImage('arm64', gzipSync(Buffer.alloc(200_000, 'arm'))),
    };
    const index = buildIndex({ amd64: images.amd64.manifest, arm64: images.arm64.manifest });
    const [here, back] = [join(scratch, 'here'), join(scratch, 'back')];
    writeLayout(here, 'v1', index, Object.values(images));
    const image = `docker://${new URL(server.url).host}/${team.name}/app:v1`;
    const push = (token: string) =>
      skopeo('copy', '--all', '--dest-tls-verify=false', `--dest-creds=any:${token}`, `oci:${here}:v1`, image);
    const pull = (token: string) =>
      skopeo('copy', '--all', '--src-tls-verify=false', `--src-creds=any:${token}`, image, `oci:${back}:v1`);

    const pusher = await callerWithRole(server, 'registry.push', team.uid);
    const pushed = await push(await pusher.token());
    assert.ok(pushed.succeeded, pushed.output);
    const viewer = await callerWithRole(server, 'viewer', team.uid);
    const pulled = await pull(await viewer.token());
    assert.ok(pulled.succeeded, pulled.output);
    assert.deepEqual(readLayout(back), readLayout(here));

    const [repo] = (await api.call(ReposService.method.listRepos, { uidp: { childrenOf: team.uid } })).repos;
    assert.equal(repo?.name, 'app');
    const { tags } = await api.call(TagsService.method.listTags, { uidp: { childrenOf: repo?.uid ?? '' } });
    assert.deepEqual(
      tags.map(({ name, digest }) => [name, digest]),
      [['v1', index.digest]],
    );
    const imageRef = { repoUid: repo?.uid ?? '', digest: index.digest };
    assert.deepEqual((await api.call(ImagesService.method.getArchitectures, imageRef)).architectures, [
      'amd64',
      'arm64',
    ]);
    for (const [architecture, { size }] of Object.entries(images)) {
      assert.equal((await api.call(ImagesService.method.getSize, { ...imageRef, architecture })).size, BigInt(size));
    }

    const unprivileged = await callerWithoutRole(server, (await fixture.newTeam()).uid);
    const consoleViewer = await callerWithRole(server, 'console_viewer', team.uid);
    for (const [who, attempt] of [
      ['a viewer who pushes', push(await viewer.token())],
      ['a caller without a role who pulls', pull(await unprivileged.token())],
      ['a console viewer who pulls blobs', pull(await consoleViewer.token())],
    ] as const) {
      const { succeeded, output } = await attempt;
      assert.ok(!succeeded && /denied|403/i.test(output), `${who}: ${output}`);
    }
  });
});
