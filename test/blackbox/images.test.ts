import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { Code } from '../../src/base/errors.ts';
import { ImagesService } from '../../src/contract/gen/chainguard/platform/registry/v2/images_pb.js';
import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { callerWithoutRole, callerWithRole } from '../support/callers.ts';
import { digestOf, insertImage, insertManifest, OCI_INDEX, withStore } from '../support/images.ts';
import { rejects } from '../support/rejects.ts';

const { getArchitectures, getSize } = ImagesService.method;
const { createRepo } = ReposService.method;

onEveryDatabaseAndWire('images', (fixture) => {
  let group: string;
  let repoUid: string;
  let amd64: { digest: string; contentSize: number };
  let arm64: { digest: string; contentSize: number };
  let index: { digest: string };

  before(async () => {
    group = await fixture.newGroup();
    repoUid = (await fixture.api.call(createRepo, { parent: group, repo: { name: 'images' } })).uid;
    await withStore(fixture.server, async (store) => {
      const children = [
        await insertImage(store, repoUid, undefined, { architecture: 'arm64', content: 'for arm64' }),
        await insertImage(store, repoUid, undefined, { architecture: 'amd64', content: 'for amd64, and larger' }),
      ] as const;
      [arm64, amd64] = children;
      const manifests = children.map(({ mediaType, digest, size }, i) => ({
        ...{ mediaType, digest, size },
        // The index has the platform of one image. That of the other is in its config.
        ...(i === 0 && { platform: { os: 'linux', architecture: 'arm64', variant: 'v8' } }),
      }));
      index = await insertManifest(store, repoUid, { mediaType: OCI_INDEX, manifests }, 'latest');
    });
  });

  test('an index has the architectures of its images', async () => {
    const { architectures } = await fixture.api.call(getArchitectures, { repoUid, digest: index.digest });
    assert.deepEqual(architectures, ['amd64', 'arm64']);
    const one = await fixture.api.call(getArchitectures, { repoUid, digest: arm64.digest });
    assert.deepEqual(one.architectures, ['arm64']);
  });

  test('the size is that of config and layers for one architecture, amd64 by default', async () => {
    const sizeOf = async (digest: string, architecture = '') => {
      const { size, architecture: of } = await fixture.api.call(getSize, { repoUid, digest, architecture });
      return [of, size];
    };
    assert.notEqual(amd64.contentSize, arm64.contentSize);
    assert.deepEqual(await sizeOf(index.digest), ['amd64', BigInt(amd64.contentSize)]);
    assert.deepEqual(await sizeOf(index.digest, 'arm64'), ['arm64', BigInt(arm64.contentSize)]);
    assert.deepEqual(await sizeOf(amd64.digest), ['amd64', BigInt(amd64.contentSize)]);
    await rejects(sizeOf(arm64.digest), Code.NOT_FOUND);
    await rejects(sizeOf(index.digest, 's390x'), Code.NOT_FOUND);
  });

  for (const [name, method] of Object.entries({ getArchitectures, getSize })) {
    test(`${name} needs the digest of an image in this repo`, async () => {
      const call = (digest: string, repo = repoUid) => fixture.api.call(method, { repoUid: repo, digest });
      await rejects(call(digestOf('none')), Code.NOT_FOUND);
      for (const digest of ['latest', 'sha256:xyz', `sha256:${'A'.repeat(64)}`]) {
        await rejects(call(digest), Code.INVALID_ARGUMENT, (error) => assert.deepEqual(error.fields, ['digest']));
      }
      const other = (
        await fixture.api.call(createRepo, { parent: group, repo: { name: `empty-${name.toLowerCase()}` } })
      ).uid;
      await rejects(call(index.digest, other), Code.NOT_FOUND);
    });

    test(`${name} needs the capability to list images`, async () => {
      const viewer = fixture.as(await (await callerWithRole(fixture.server, 'viewer', group)).token());
      await viewer.call(method, { repoUid, digest: index.digest });
      const unprivileged = fixture.as(await (await callerWithoutRole(fixture.server, group)).token());
      await rejects(unprivileged.call(method, { repoUid, digest: index.digest }), Code.PERMISSION_DENIED);
    });
  }
});
