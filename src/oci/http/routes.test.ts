import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isRegistryPath, routeOf } from './routes.ts';

test('a path is parsed from its end, so that a repo may have any name', () => {
  assert.deepEqual(routeOf('/v2/'), { kind: 'version' });
  assert.deepEqual(routeOf('/v2'), { kind: 'version' });
  assert.deepEqual(routeOf('/v2/token'), { kind: 'token' });
  assert.deepEqual(routeOf('/token'), { kind: 'token' });
  assert.deepEqual(routeOf('/v2/_catalog'), { kind: 'catalog' });
  assert.deepEqual(routeOf('/v2/a/b/manifests/v1'), { kind: 'tagged manifest', name: 'a/b', tag: 'v1' });
  assert.deepEqual(routeOf('/v2/a/manifests/manifests/list'), {
    kind: 'tagged manifest',
    name: 'a/manifests',
    tag: 'list',
  });
  assert.deepEqual(routeOf('/v2/a/blobs/uploads/manifests/x'), {
    kind: 'tagged manifest',
    name: 'a/blobs/uploads',
    tag: 'x',
  });
  assert.deepEqual(routeOf('/v2/a/b/manifests/sha256:ab'), { kind: 'manifest', name: 'a/b', digest: 'sha256:ab' });
  assert.deepEqual(routeOf('/v2/a/b/blobs/sha256%3Aab'), { kind: 'blob', name: 'a/b', digest: 'sha256:ab' });
  assert.deepEqual(routeOf('/v2/a/b/blobs/uploads/'), { kind: 'uploads', name: 'a/b' });
  assert.deepEqual(routeOf('/v2/a/b/blobs/uploads'), { kind: 'uploads', name: 'a/b' });
  assert.deepEqual(routeOf('/v2/a/b/blobs/uploads/id'), { kind: 'upload', name: 'a/b', id: 'id' });
  assert.deepEqual(routeOf('/v2/a/tags/tags/list'), { kind: 'tags', name: 'a/tags' });
  assert.deepEqual(routeOf('/v2/a/b/_chainguard/history/v1'), { kind: 'tag history', name: 'a/b', tag: 'v1' });
  assert.deepEqual(routeOf('/v2/a/b/referrers/sha256:ab'), { kind: 'referrers', name: 'a/b', digest: 'sha256:ab' });
});

test('other paths have no route', () => {
  for (const path of [
    '/v2/a',
    '/v2/a/b',
    '/v2/a/b/tags/other',
    '/v2/manifests/x',
    '/v2/uploads/x',
    '/v2/a/uploads/x',
    '/v2/a/b/history/x',
    '/v2/_chainguard/history/x',
  ]) {
    assert.equal(routeOf(path), undefined, path);
  }
});

test('only /token and paths below /v2/ belong to the registry', () => {
  assert.ok(isRegistryPath('/v2') && isRegistryPath('/v2/') && isRegistryPath('/v2/x') && isRegistryPath('/token'));
  assert.ok(
    !isRegistryPath('/token/x') &&
      !isRegistryPath('/v2x') &&
      !isRegistryPath('/registry/v2/repos') &&
      !isRegistryPath('/'),
  );
});
