import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, toBinary } from '@bufbuild/protobuf';
import { ListReposResponseSchema, type Repo, RepoSchema } from '../gen/chainguard/platform/registry/v2/repos_pb.js';
import { decodeCached } from '../message-cache.ts';
import { encodeJsonLatin1, toLatin1 } from './encode-latin1.ts';

test('a page of cached and other items has the same JSON as if it was encoded as a whole', () => {
  const name = '"repos":[] für 日本';
  const cached = decodeCached(
    RepoSchema,
    'on a page',
    toBinary(RepoSchema, create(RepoSchema, { name, bundles: ['base'], syncConfig: { source: 's' } })),
  ) as Repo;
  const page = create(ListReposResponseSchema, { nextPageToken: name, totalCount: 2n });
  page.repos = [cached, create(RepoSchema, { name: 'not cached' })];
  const item = { name, bundles: ['base'], sync_config: { source: 's', uniqueTags: false, gracePeriod: false } };
  for (let round = 0; round < 2; round++) {
    assert.deepEqual(JSON.parse(Buffer.from(encodeJsonLatin1(ListReposResponseSchema, page), 'latin1').toString()), {
      repos: [item, { name: 'not cached' }],
      nextPageToken: name,
      totalCount: '2',
      skipped: 0,
    });
  }
});

test('a Latin-1 string has the bytes of UTF-8', () => {
  for (const text of ['', 'plain', 'für', '日本', '👍']) {
    assert.deepEqual(Buffer.from(toLatin1(text), 'latin1'), Buffer.from(text));
  }
});
