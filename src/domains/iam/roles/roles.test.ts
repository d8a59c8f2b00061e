import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resources } from '../../domains.ts';
import { KINDS_REFERRING_TO_ROLES } from './roles.ts';

test('a role cannot be deleted while a resource of any kind refers to it', () => {
  for (const { kind, plural, references = {} } of resources) {
    if (!('role' in references)) continue;
    assert.ok(KINDS_REFERRING_TO_ROLES.includes(kind), `${kind} is missing in ROLE_USERS`);
    assert.equal(plural, `${kind}s`, 'the error message adds an s to the kind');
  }
});
