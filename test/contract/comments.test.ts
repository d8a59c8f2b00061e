import assert from 'node:assert/strict';
import { test } from 'node:test';
import comments from '../../src/contract/gen/comments.json' with { type: 'json' };
import { files } from '../../src/contract/method-table.ts';
import { declarationsOfDescriptors } from './descriptors.ts';

test('every service, method, message and enum is documented', () => {
  const documented = new Set(Object.keys(comments));
  // comments.json names methods with a dot. Files and fields need no comment.
  for (const [name, declaration] of declarationsOfDescriptors(files)) {
    if (name.endsWith('.proto') || (declaration as { number?: number }).number !== undefined) continue;
    assert.ok(documented.has(name.replace('/', '.')), name);
  }
});

test('comments are complete sentences without line prefixes', () => {
  for (const [name, text] of Object.entries(comments)) assert.match(text, /^\S.*[.)`]$/s, name);
  assert.equal(
    comments['chainguard.platform.iam.v2.GroupsService.CreateGroup'],
    'Creates a group in `parent`, or an organization if there is no parent. Names are unique among the groups with the ' +
      'same parent. The caller that creates an organization becomes its owner.',
  );
  assert.equal(comments['chainguard.platform.iam.v2.OrgStatus.ORG_STATUS_READY'], 'The organization is ready for use.');
  assert.equal(
    comments['chainguard.platform.iam.v2.Identity.relationship'].split('.')[0],
    'How the identity authenticates',
  );
});
