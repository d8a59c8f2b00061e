import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resources } from '../../domains.ts';
import { ROLE_USERS } from './roles.ts';

test('whatever refers to a role keeps it from being deleted', () => {
  for (const { kind, plural, references = {} } of resources) {
    if (!('role' in references)) continue;
    assert.ok(ROLE_USERS.includes(kind), `${kind} is missing in ROLE_USERS`);
    assert.equal(plural, `${kind}s`, 'the refusal names what is in the way by adding an s');
  }
});
