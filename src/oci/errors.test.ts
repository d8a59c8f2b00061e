import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError, Code, denied, invalid, unauthenticated } from '../base/errors.ts';
import { BlobError, type BlobFailure } from '../blobs/errors.ts';
import { RegistryError } from '../domains/registry/errors.ts';
import { asOciError, codeOf, errorBody, OciError } from './errors.ts';

const answered = (thrown: unknown) => {
  const { status, code, message } = asOciError(thrown);
  return [status, code, message];
};

test('errors of every layer become OCI errors', () => {
  assert.deepEqual(answered(unauthenticated('who are you?')), [401, 'UNAUTHORIZED', 'who are you?']);
  assert.deepEqual(answered(denied('no')), [403, 'DENIED', 'no']);
  assert.deepEqual(answered(invalid('name', 'is bad')), [400, 'NAME_INVALID', 'name: is bad']);
  assert.deepEqual(answered(new ApiError(Code.UNAVAILABLE, 'Unavailable: later')), [503, 'UNAVAILABLE', 'later']);
  assert.deepEqual(answered(new RegistryError('MANIFEST_UNKNOWN', 'none')), [404, 'MANIFEST_UNKNOWN', 'none']);
  const same = new OciError('UNSUPPORTED', 'x', { status: 400 });
  assert.equal(asOciError(same), same);
});

test('every blob error has its own status', () => {
  const failures: readonly (readonly [BlobFailure, number, string])[] = [
    [{ reason: 'invalid' }, 400, 'DIGEST_INVALID'],
    [{ reason: 'mismatch', expected: 'a', actual: 'b' }, 400, 'DIGEST_INVALID'],
    [{ reason: 'unknown', kind: 'blob' }, 404, 'BLOB_UNKNOWN'],
    [{ reason: 'unknown', kind: 'upload' }, 404, 'BLOB_UPLOAD_UNKNOWN'],
    [{ reason: 'range', size: 5 }, 416, 'SIZE_INVALID'],
    [{ reason: 'offset', offset: 5 }, 416, 'BLOB_UPLOAD_INVALID'],
    [{ reason: 'busy' }, 409, 'BLOB_UPLOAD_INVALID'],
    [{ reason: 'interrupted', offset: 5 }, 408, 'BLOB_UPLOAD_INVALID'],
    [{ reason: 'large', limit: 5 }, 413, 'SIZE_INVALID'],
    [{ reason: 'full' }, 507, 'UNKNOWN'],
    [{ reason: 'failed' }, 500, 'UNKNOWN'],
  ];
  for (const [failure, status, code] of failures) {
    assert.deepEqual(answered(new BlobError(failure)).slice(0, 2), [status, code], failure.reason);
    assert.notEqual(codeOf(status), Code.OK);
  }
});

test('internal errors reveal nothing', () => {
  for (const thrown of [
    new Error('SELECT secret FROM table'),
    new TypeError('x'),
    'text',
    new ApiError(Code.INTERNAL, 'Internal: secret'),
  ]) {
    const error = asOciError(thrown);
    assert.deepEqual([error.status, error.code], [500, 'UNKNOWN']);
    assert.ok(!errorBody(error).includes('secret'));
  }
});

test('the error body has the form of the specification', () => {
  const error = asOciError(new RegistryError('MANIFEST_BLOB_UNKNOWN', 'push these first', { digests: ['a'] }));
  assert.deepEqual(JSON.parse(errorBody(error)), {
    errors: [{ code: 'MANIFEST_BLOB_UNKNOWN', message: 'push these first', detail: { digests: ['a'] } }],
  });
});
