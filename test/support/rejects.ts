import assert from 'node:assert/strict';
import type { Code } from '../../src/base/errors.ts';
import { CallError } from './wires.ts';

/** Asserts that a call fails with `code`, and returns the error. `check` can make further assertions about it. */
export async function rejects(
  call: Promise<unknown>,
  code: Code,
  check?: (error: CallError) => void,
): Promise<CallError> {
  const error = await call.then(
    () => assert.fail('the call should have failed'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof CallError, String(error));
  assert.equal(error.code, code, error.message);
  check?.(error);
  return error;
}
