import assert from 'node:assert/strict';
import { test } from 'node:test';
import { file_platform_iam_v1_group_platform } from '../../src/contract/gen/platform/iam/v1/group.platform_pb.js';
import { file_platform_iam_v1_role_platform } from '../../src/contract/gen/platform/iam/v1/role.platform_pb.js';
import { identityFiles, methodTable } from '../../src/contract/methods.ts';
import { assertNoFactEscapes, differences } from './comparison.ts';
import { declaredByDescriptors } from './descriptors.ts';
import { declaredByFacts, readFacts } from './facts.ts';

/** What is served, and what its messages are made of. */
const files = [...identityFiles, file_platform_iam_v1_group_platform, file_platform_iam_v1_role_platform];

test('the token exchange, Auth and the messages they use are the facts, neither more nor less', (t) => {
  const found = differences(declaredByFacts(readFacts('v1-identity')), declaredByDescriptors(files));
  assert.deepEqual(found, []);
  assert.equal(methodTable(identityFiles).length, 6);
  t.diagnostic(`${methodTable(files).length} methods, ${found.length} differences`);
});

test('no fact escapes the comparison', () => {
  for (const file of files) assertNoFactEscapes(readFacts('v1-identity'), file);
});

test('a package without a version has a domain all the same', () => {
  assert.deepEqual([...new Set(methodTable(files).map(({ domain }) => domain))], ['oidc', 'auth', 'iam']);
});
