import assert from 'node:assert/strict';
import { test } from 'node:test';
import comments from '../../src/contract/gen/comments.json' with { type: 'json' };
import { files } from '../../src/contract/method-table.ts';
import { declaredByDescriptors } from './descriptors.ts';

test('every service, method, message and enum is documented', () => {
  const documented = new Set(Object.keys(comments));
  // Methods are written with a dot there; files and fields need no comment.
  for (const [name, facts] of declaredByDescriptors(files)) {
    if (name.endsWith('.proto') || (facts as { number?: number }).number !== undefined) continue;
    assert.ok(documented.has(name.replace('/', '.')), name);
  }
});

test('comments are flowing text', () => {
  for (const [name, text] of Object.entries(comments)) assert.match(text, /^\S.*[.)`]$/s, name);
  assert.equal(
    comments['chainguard.platform.iam.v2.GroupsService.CreateGroup'],
    'Creates a group below `parent`, or a new organization when there is none. Names are unique among siblings.',
  );
  assert.equal(comments['chainguard.platform.iam.v2.OrgStatus.ORG_STATUS_READY'], 'In use.');
  assert.equal(
    comments['chainguard.platform.iam.v2.Identity.relationship'].split('.')[0],
    'How the identity is proven',
  );
});
