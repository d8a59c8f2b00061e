import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCancellation } from './cancellation.ts';
import { clientGone } from './request-id.ts';

test('who looks before hears of it, who looks after finds it', () => {
  const cancellation = createCancellation();
  const early = cancellation.signal();
  assert.equal(early.aborted, false);
  cancellation.cancel();
  assert.equal(early.reason, clientGone);
  assert.equal(cancellation.signal(), early);

  const unwatched = createCancellation();
  unwatched.cancel();
  assert.equal(unwatched.signal().reason, clientGone);
});
