import assert from 'node:assert/strict';
import type { Code } from '../../src/base/errors.ts';
import { CallError } from './wires.ts';

/** Waits for a call to fail with `code` and answers the error, for a closer look. */
export async function rejects(
  work: Promise<unknown>,
  code: Code,
  look?: (error: CallError) => void,
): Promise<CallError> {
  const error = await work.then(
    () => assert.fail('the call should have failed'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof CallError, String(error));
  assert.equal(error.code, code, error.message);
  look?.(error);
  return error;
}
