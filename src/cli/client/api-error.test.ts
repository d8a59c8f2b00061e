import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type ApiError,
  Code,
  denied,
  invalidFields,
  notFound,
  precondition,
  quotaExceeded,
} from '../../base/errors.ts';
import { httpStatus } from '../../base/http-status.ts';
import { statusJson } from '../../transport/error-status.ts';
import { type CliError, ExitCode } from '../exit-codes.ts';
import { apiError } from './api-error.ts';

/** An error of the server as a client receives it. */
function received(error: ApiError): CliError {
  const context = { domain: 'iam', serviceDomain: 'wharfinger.dev', requestId: 'r1' };
  const text = JSON.stringify(statusJson(error, context));
  return apiError('http://server', { status: httpStatus(error.code), statusText: '', text });
}

test('each field violation has a line, and the request id is last', () => {
  const error = received(
    invalidFields([
      { field: 'name', description: 'must have 3 to 63 characters' },
      { field: 'description', description: 'must be one line' },
    ]),
  );
  assert.equal(error.exitCode, ExitCode.invalid);
  assert.match(error.message, /^Invalid argument: name: /);
  assert.deepEqual(error.details, [
    'name: must have 3 to 63 characters',
    'description: must be one line',
    'request id: r1',
  ]);
});

test('precondition violations have their type', () => {
  const error = received(precondition('RESOURCE_NOT_EMPTY', 'u', 'cannot delete group with child groups'));
  assert.equal(error.exitCode, ExitCode.precondition);
  assert.deepEqual(error.details, ['RESOURCE_NOT_EMPTY: cannot delete group with child groups', 'request id: r1']);
});

test('an exhausted quota says whose it is', () => {
  const error = received(quotaExceeded('organization:u', 'an organization may have 2 repos', 60_000));
  assert.equal(error.message, 'Resource exhausted: an organization may have 2 repos');
  assert.deepEqual(error.details, ['limit of organization:u', 'request id: r1']);
});

test('a permission error suggests wharf auth explain', () => {
  const error = received(denied('needs more', { capabilities: 'groups.create, groups.list', scope: 'u' }));
  assert.equal(error.exitCode, ExitCode.denied);
  assert.deepEqual(error.details, ['to see why: wharf auth explain groups.create u', 'request id: r1']);
});

test('every code has its exit code', () => {
  const expected: Partial<Record<keyof typeof Code, number>> = {
    UNAUTHENTICATED: 3,
    PERMISSION_DENIED: 4,
    NOT_FOUND: 5,
    ALREADY_EXISTS: 6,
    ABORTED: 6,
    FAILED_PRECONDITION: 7,
    INVALID_ARGUMENT: 8,
    OUT_OF_RANGE: 8,
    UNAVAILABLE: 9,
    DEADLINE_EXCEEDED: 9,
  };
  for (const [name, code] of Object.entries(Code)) {
    const { exitCode } = received({ ...notFound('group', 'u'), code, message: name } as ApiError);
    assert.equal(exitCode, expected[name as keyof typeof Code] ?? 1, name);
  }
});

test('a response that is not an API error is classified by its status', () => {
  const errorFor = (status: number, text: string) =>
    apiError('http://proxy', { status, statusText: 'Some Words', text });
  for (const [status, exitCode] of [
    [401, 3],
    [403, 4],
    [404, 1],
    [500, 1],
    [502, 9],
    [503, 9],
    [504, 9],
  ] as const) {
    assert.equal(errorFor(status, '<html>').exitCode, exitCode, String(status));
  }
  assert.equal(errorFor(502, '').message, 'http://proxy is reachable but answered 502 Some Words');
  for (const text of ['null', '[]', '{"code":"5"}', '{"code":5}', '{"code":5,"message":"m","details":7}']) {
    assert.ok(errorFor(500, text).message, text);
  }
});
