import assert from 'node:assert/strict';
import type { FieldViolation } from '../base/errors.ts';
import { ApiError, Code } from '../base/errors.ts';
import type { Method } from './method.ts';
import { files, methodTable } from './method-table.ts';

export const methods: readonly Method[] = methodTable(files);

export function methodNamed(name: string): Method {
  const method = methods.find(({ desc }) => desc.name === name);
  assert.ok(method, name);
  return method;
}

/** The field violations of the INVALID_ARGUMENT that `run` must throw. */
export function violationsOf(run: () => unknown): readonly FieldViolation[] {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    assert.equal(error.code, Code.INVALID_ARGUMENT);
    const [detail] = error.details;
    assert.ok(detail?.type === 'BadRequest');
    return detail.fieldViolations;
  }
  assert.fail('no error was thrown');
}

/** The field violations as lines of `field: description`. */
export const violationLines = (run: () => unknown): string[] =>
  violationsOf(run).map(({ field, description }) => `${field}: ${description}`);
