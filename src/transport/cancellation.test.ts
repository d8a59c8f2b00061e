import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientDisconnected, createCancellation } from './cancellation.ts';

test('a signal is aborted whether it was requested before or after the cancellation', () => {
  const cancellation = createCancellation();
  const early = cancellation.signal();
  assert.equal(early.aborted, false);
  cancellation.cancel();
  assert.equal(early.reason, clientDisconnected);
  assert.equal(cancellation.signal(), early);

  const cancelledFirst = createCancellation();
  cancelledFirst.cancel();
  assert.equal(cancelledFirst.signal().reason, clientDisconnected);
});
