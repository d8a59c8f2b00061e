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

/** What an act that has to fail with INVALID_ARGUMENT complains about. */
export function violationsOf(act: () => unknown): readonly FieldViolation[] {
  try {
    act();
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    assert.equal(error.code, Code.INVALID_ARGUMENT);
    const [detail] = error.details;
    assert.ok(detail?.type === 'BadRequest');
    return detail.fieldViolations;
  }
  assert.fail('nothing was wrong');
}

/** The same as `field: description` lines. */
export const complaints = (act: () => unknown): string[] =>
  violationsOf(act).map(({ field, description }) => `${field}: ${description}`);
