import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { TagSchema } from '../../../contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import { PARTITION } from '../../../resource/definition.ts';
import { tags } from './tags.ts';

const partitionOf = (name: string): string => [...(tags.values[PARTITION]?.(create(TagSchema, { name })) ?? [])].join();

const expected: Readonly<Record<string, readonly string[]>> = {
  '': [
    'latest',
    '1.2.3',
    '1.2.3-dev',
    '20260801',
    'v1-2026',
    '1-20261301',
    '1-20260832',
    '1-r',
    '1-rc1',
    'r1',
    'sha256',
  ],
  include_referrers: ['sha256-ab', `sha256-${'a'.repeat(64)}.sig`, 'sha256-ab-r1'],
  include_dates: ['1.2-20260801', 'latest-19991231', 'edge-202608011230', 'edge-20260801123059', '1-r2-20260801'],
  include_epochs: ['1.2.3-r0', '1-r12', '1-20260801-r1'],
};

for (const [partition, names] of Object.entries(expected)) {
  test(`${partition || 'always listed'}: names such as ${names[0]}`, () => {
    for (const name of names) assert.equal(partitionOf(name), partition, name);
  });
}
