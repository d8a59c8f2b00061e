import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { GroupSchema } from './gen/chainguard/platform/iam/v2/groups_pb.js';
import { ListReposResponseSchema, type Repo, RepoSchema } from './gen/chainguard/platform/registry/v2/repos_pb.js';
import { asOctets, encodeOctets } from './json/encode.ts';
import { isKept, keptBytes, keptJson, readKept, readToKeep } from './message-cache.ts';

const bytesOf = (name: string, description = ''): Uint8Array =>
  toBinary(RepoSchema, create(RepoSchema, { name, description, syncConfig: { source: 's' }, bundles: ['base'] }));

test('equal bytes are decoded once, and other bytes anew', () => {
  const first = readKept(RepoSchema, 'once', bytesOf('a'));
  assert.equal(readKept(RepoSchema, 'once', bytesOf('a')), first);
  const changed = readKept(RepoSchema, 'once', bytesOf('b'));
  assert.equal((changed as Repo).name, 'b');
  assert.equal((readKept(RepoSchema, 'once', bytesOf('a')) as Repo).name, 'a');
});

test('two kinds under one key do not mix', () => {
  const bytes = toBinary(RepoSchema, create(RepoSchema, { uid: 'a' }));
  readKept(RepoSchema, 'two kinds', bytes);
  assert.equal(readKept(GroupSchema, 'two kinds', bytes).$typeName, GroupSchema.typeName);
});

test('nobody can change what all share', () => {
  const repo = readKept(RepoSchema, 'frozen', bytesOf('a')) as Repo;
  assert.throws(() => Object.assign(repo, { name: 'b' }), TypeError);
  assert.throws(() => Object.assign(repo.syncConfig ?? {}, { source: 't' }), TypeError);
  assert.throws(() => repo.bundles.push('more'), TypeError);
});

test('bytes and JSON are those of the message, as its own type only', () => {
  const bytes = bytesOf('a');
  const repo = readKept(RepoSchema, 'written', bytes);
  assert.equal(keptBytes(RepoSchema, repo), bytes);
  assert.equal(keptBytes(GroupSchema, repo), undefined);
  const octets = encodeOctets(RepoSchema, repo);
  assert.equal(octets, encodeOctets(RepoSchema, fromBinary(RepoSchema, bytes)));
  const unasked = () => assert.fail('it is known');
  assert.equal(keptJson(RepoSchema, repo, unasked), octets);
  const other = () => 'other';
  assert.equal(keptJson(GroupSchema, repo, other), 'other');
});

test('large messages are not kept', () => {
  const bytes = bytesOf('a', 'x'.repeat(3_000));
  const repo = readKept(RepoSchema, 'large', bytes);
  assert.notEqual(readKept(RepoSchema, 'large', bytes), repo);
  assert.equal(keptBytes(RepoSchema, repo), undefined);
  assert.equal(isKept(repo), false);
  assert.equal(isKept(readToKeep(RepoSchema, bytesOf('small'))), true);
});

test('a page of kept rows and others reads as if all were written at once', () => {
  const name = '"repos":[] für 日本';
  const kept = readKept(RepoSchema, 'on a page', bytesOf(name)) as Repo;
  const page = create(ListReposResponseSchema, { nextPageToken: name, totalCount: 2n });
  page.repos = [kept, create(RepoSchema, { name: 'fresh' })];
  const row = { name, bundles: ['base'], sync_config: { source: 's', uniqueTags: false, gracePeriod: false } };
  for (let times = 0; times < 2; times++) {
    assert.deepEqual(JSON.parse(Buffer.from(encodeOctets(ListReposResponseSchema, page), 'latin1').toString()), {
      repos: [row, { name: 'fresh' }],
      nextPageToken: name,
      totalCount: '2',
      skipped: 0,
    });
  }
});

test('octets are the bytes of UTF-8, whatever the text', () => {
  for (const text of ['', 'plain', 'für', '日本', '👍']) {
    assert.deepEqual(Buffer.from(asOctets(text), 'latin1'), Buffer.from(text));
  }
});
