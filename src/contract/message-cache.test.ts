import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { GroupSchema } from './gen/chainguard/platform/iam/v2/groups_pb.js';
import { type Repo, RepoSchema } from './gen/chainguard/platform/registry/v2/repos_pb.js';
import { encodeJsonLatin1 } from './json/encode-latin1.ts';
import { cachedBytes, cachedJson, decodeCached, decodeFrozen, isCached } from './message-cache.ts';

const bytesOf = (name: string, description = ''): Uint8Array =>
  toBinary(RepoSchema, create(RepoSchema, { name, description, syncConfig: { source: 's' }, bundles: ['base'] }));

test('equal bytes are decoded once, changed bytes again', () => {
  const first = decodeCached(RepoSchema, 'once', bytesOf('a'));
  assert.equal(decodeCached(RepoSchema, 'once', bytesOf('a')), first);
  const changed = decodeCached(RepoSchema, 'once', bytesOf('b'));
  assert.equal((changed as Repo).name, 'b');
  assert.equal((decodeCached(RepoSchema, 'once', bytesOf('a')) as Repo).name, 'a');
});

test('a message of another type under the same key is decoded again', () => {
  const bytes = toBinary(RepoSchema, create(RepoSchema, { uid: 'a' }));
  decodeCached(RepoSchema, 'two types', bytes);
  assert.equal(decodeCached(GroupSchema, 'two types', bytes).$typeName, GroupSchema.typeName);
});

test('a cached message cannot be changed', () => {
  const repo = decodeCached(RepoSchema, 'frozen', bytesOf('a')) as Repo;
  assert.throws(() => Object.assign(repo, { name: 'b' }), TypeError);
  assert.throws(() => Object.assign(repo.syncConfig ?? {}, { source: 't' }), TypeError);
  assert.throws(() => repo.bundles.push('more'), TypeError);
});

test('bytes and JSON are cached for the type of the message only', () => {
  const bytes = bytesOf('a');
  const repo = decodeCached(RepoSchema, 'written', bytes);
  assert.equal(cachedBytes(RepoSchema, repo), bytes);
  assert.equal(cachedBytes(GroupSchema, repo), undefined);
  const json = encodeJsonLatin1(RepoSchema, repo);
  assert.equal(json, encodeJsonLatin1(RepoSchema, fromBinary(RepoSchema, bytes)));
  const other = () => 'other';
  assert.equal(cachedJson(GroupSchema, repo, other), 'other');
  assert.equal(encodeJsonLatin1(RepoSchema, repo), json);
});

test('JSON is cached for the function that encoded it', () => {
  const repo = decodeCached(RepoSchema, 'encoded', bytesOf('a'));
  let calls = 0;
  const encode = () => `json ${++calls}`;
  assert.equal(cachedJson(RepoSchema, repo, encode), 'json 1');
  assert.equal(cachedJson(RepoSchema, repo, encode), 'json 1');
  assert.equal(
    cachedJson(RepoSchema, repo, () => 'other'),
    'other',
  );
});

test('large messages are not cached', () => {
  const bytes = bytesOf('a', 'x'.repeat(3_000));
  const repo = decodeCached(RepoSchema, 'large', bytes);
  assert.notEqual(decodeCached(RepoSchema, 'large', bytes), repo);
  assert.equal(cachedBytes(RepoSchema, repo), undefined);
  assert.equal(isCached(repo), false);
  assert.equal(isCached(decodeFrozen(RepoSchema, bytesOf('small'))), true);
});
