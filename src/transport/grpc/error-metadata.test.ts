import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromBinary } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { ApiError, Code, invalid, invalidFields, notFound, precondition } from '../../base/errors.ts';
import { BadRequestSchema } from '../../contract/gen/google/rpc/error_details_pb.js';
import { StatusSchema } from '../../contract/gen/google/rpc/status_pb.js';
import { grpcStatusOf, shorten } from './error-metadata.ts';

const context = { domain: 'iam', serviceDomain: 'wharfinger.dev', requestId: 'r'.repeat(128) };

function sent(error: ApiError) {
  const { details: message, metadata } = grpcStatusOf(error, context);
  const [details] = metadata.get('grpc-status-details-bin');
  assert.ok(details instanceof Buffer);
  const status = fromBinary(StatusSchema, details);
  const bytes = encodeURI(message).length + details.toString('base64').length;
  return { message, status, bytes };
}

const violations = (count: number) =>
  Array.from({ length: count }, (_, at) => ({ field: `items[${at}].name`, description: 'must not be empty' }));

test('an error of usual size is sent unchanged', () => {
  const error = invalidFields(violations(20));
  const { message, status } = sent(error);
  assert.equal(message, error.message);
  assert.equal(status.message, error.message);
  assert.deepEqual(
    status.details.map((detail) => detail.typeUrl.replace(/.*\./, '')),
    ['ErrorInfo', 'BadRequest', 'RequestInfo'],
  );
});

test('control characters in the message are replaced', () => {
  assert.equal(sent(new ApiError(Code.ABORTED, 'a\r\nb\0c\x7fd')).message, 'a b c d');
});

test('of 10,000 violations the first ones are sent', () => {
  const { status } = sent(invalidFields(violations(10_000)));
  const detail = status.details[1];
  assert.ok(detail);
  const kept = anyUnpack(detail, BadRequestSchema)?.fieldViolations ?? [];
  assert.ok(kept.length > 40, `${kept.length} kept`);
  assert.deepEqual(
    kept.map(({ field, description }) => ({ field, description })),
    violations(kept.length),
  );
});

const long = '\u{1f6a2}'.repeat(10_000);
for (const [name, error] of [
  ['many violations', invalidFields(violations(10_000))],
  ['one long violation', invalid(long, long)],
  ['many long violations', invalidFields(Array(100).fill({ field: long, description: long }))],
  ['a long resource', notFound(long, long)],
  ['a long precondition', precondition(long, long, long)],
  ['long metadata', new ApiError(Code.PERMISSION_DENIED, long, [], { a: long, b: long })],
] as const) {
  test(`no error exceeds the limit of clients: ${name}`, () => {
    const { bytes, message, status } = sent(error);
    assert.ok(bytes <= 7 * 1024, `${bytes} bytes`);
    assert.equal(status.details.length, error.details.length + 2);
    assert.equal(status.message, message);
    assert.ok(!message.includes('\ufffd'), 'cut between characters');
  });
}

test('shortening keeps the violations up to the first that does not fit', () => {
  const short = { field: 'a', description: 'b' };
  const error = invalidFields([short, { field: 'c'.repeat(100), description: 'd' }, short]);
  const [detail] = shorten(error, 50).details;
  assert.deepEqual(detail, { type: 'BadRequest', fieldViolations: [short] });
});
