import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { GroupSchema } from './gen/chainguard/platform/iam/v2/groups_pb.js';
import { ListReposResponseSchema, type Repo, RepoSchema } from './gen/chainguard/platform/registry/v2/repos_pb.js';
import { encodeJsonLatin1, toLatin1 } from './json/encode.ts';
import { cachedBytes, cachedJson, decodeCacheable, decodeCached, isCached } from './message-cache.ts';

const bytesOf = (name: string, description = ''): Uint8Array =>
  toBinary(RepoSchema, create(RepoSchema, { name, description, syncConfig: { source: 's' }, bundles: ['base'] }));

test('equal bytes are decoded once, and other bytes anew', () => {
  const first = decodeCached(RepoSchema, 'once', bytesOf('a'));
  assert.equal(decodeCached(RepoSchema, 'once', bytesOf('a')), first);
  const changed = decodeCached(RepoSchema, 'once', bytesOf('b'));
  assert.equal((changed as Repo).name, 'b');
  assert.equal((decodeCached(RepoSchema, 'once', bytesOf('a')) as Repo).name, 'a');
});

test('two kinds under one key do not mix', () => {
  const bytes = toBinary(RepoSchema, create(RepoSchema, { uid: 'a' }));
  decodeCached(RepoSchema, 'two kinds', bytes);
  assert.equal(decodeCached(GroupSchema, 'two kinds', bytes).$typeName, GroupSchema.typeName);
});

test('nobody can change what all share', () => {
  const repo = decodeCached(RepoSchema, 'frozen', bytesOf('a')) as Repo;
  assert.throws(() => Object.assign(repo, { name: 'b' }), TypeError);
  assert.throws(() => Object.assign(repo.syncConfig ?? {}, { source: 't' }), TypeError);
  assert.throws(() => repo.bundles.push('more'), TypeError);
});

test('bytes and JSON are those of the message, as its own type only', () => {
  const bytes = bytesOf('a');
  const repo = decodeCached(RepoSchema, 'written', bytes);
  assert.equal(cachedBytes(RepoSchema, repo), bytes);
  assert.equal(cachedBytes(GroupSchema, repo), undefined);
  const octets = encodeJsonLatin1(RepoSchema, repo);
  assert.equal(octets, encodeJsonLatin1(RepoSchema, fromBinary(RepoSchema, bytes)));
  const unasked = () => assert.fail('it is known');
  assert.equal(cachedJson(RepoSchema, repo, unasked), octets);
  const other = () => 'other';
  assert.equal(cachedJson(GroupSchema, repo, other), 'other');
});

test('large messages are not kept', () => {
  const bytes = bytesOf('a', 'x'.repeat(3_000));
  const repo = decodeCached(RepoSchema, 'large', bytes);
  assert.notEqual(decodeCached(RepoSchema, 'large', bytes), repo);
  assert.equal(cachedBytes(RepoSchema, repo), undefined);
  assert.equal(isCached(repo), false);
  assert.equal(isCached(decodeCacheable(RepoSchema, bytesOf('small'))), true);
});

test('a page of kept rows and others reads as if all were written at once', () => {
  const name = '"repos":[] für 日本';
  const kept = decodeCached(RepoSchema, 'on a page', bytesOf(name)) as Repo;
  const page = create(ListReposResponseSchema, { nextPageToken: name, totalCount: 2n });
  page.repos = [kept, create(RepoSchema, { name: 'fresh' })];
  const row = { name, bundles: ['base'], sync_config: { source: 's', uniqueTags: false, gracePeriod: false } };
  for (let times = 0; times < 2; times++) {
    assert.deepEqual(JSON.parse(Buffer.from(encodeJsonLatin1(ListReposResponseSchema, page), 'latin1').toString()), {
      repos: [row, { name: 'fresh' }],
      nextPageToken: name,
      totalCount: '2',
      skipped: 0,
    });
  }
});

test('octets are the bytes of UTF-8, whatever the text', () => {
  for (const text of ['', 'plain', 'für', '日本', '👍']) {
    assert.deepEqual(Buffer.from(toLatin1(text), 'latin1'), Buffer.from(text));
  }
});
