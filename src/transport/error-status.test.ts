import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRegistry, fromBinary, toBinary, toJson } from '@bufbuild/protobuf';
import type { CodeName, Detail } from '../base/errors.ts';
import {
  ApiError,
  alreadyExists,
  Code,
  denied,
  invalidFields,
  notFound,
  precondition,
  quotaExceeded,
  termsNotAccepted,
} from '../base/errors.ts';
import { httpStatus } from '../base/http-status.ts';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  PreconditionFailureSchema,
  QuotaFailureSchema,
  RequestInfoSchema,
  ResourceInfoSchema,
  RetryInfoSchema,
} from '../contract/gen/google/rpc/error_details_pb.js';
import { StatusSchema } from '../contract/gen/google/rpc/status_pb.js';
import { TermsNotAcceptedDetailSchema } from '../contract/gen/platform/iam/v1/terms.platform_pb.js';
import { statusJson, toStatus } from './error-status.ts';

const context = { domain: 'iam', serviceDomain: 'wharfinger.dev', requestId: 'req-1' };

/** One error for every type of detail. A new type without an example does not compile. */
const examples: Record<Detail['type'] | 'none', ApiError> = {
  BadRequest: invalidFields([
    { field: 'name', description: 'must not be empty' },
    { field: 'claim_match.issuer', description: 'must be a URL' },
  ]),
  PreconditionFailure: precondition('RESOURCE_NOT_EMPTY', 'abc', 'cannot delete group with child groups'),
  ResourceInfo: notFound('group', 'abc'),
  QuotaFailure: quotaExceeded('identity:abc', 'an identity may own 10 organizations', 60_000),
  RetryInfo: quotaExceeded('identity:abc', 'an identity may send 10 requests per second', 1.2),
  TermsNotAccepted: termsNotAccepted('abc', ['sfdpa.v1'], new Map([['sfdpa.v1', 'https://example.com/dpa']]), 'v1'),
  none: denied('groups.list is missing', { capability: 'groups.list' }),
};

const registry = createRegistry(
  BadRequestSchema,
  ErrorInfoSchema,
  PreconditionFailureSchema,
  QuotaFailureSchema,
  RequestInfoSchema,
  ResourceInfoSchema,
  RetryInfoSchema,
  TermsNotAcceptedDetailSchema,
);

for (const [kind, error] of Object.entries(examples)) {
  test(`both wires have the same status: ${kind}`, () => {
    const overTheWire = fromBinary(StatusSchema, toBinary(StatusSchema, toStatus(error, context)));
    assert.deepEqual(toJson(StatusSchema, overTheWire, { registry }), statusJson(error, context));
  });
}

test('a validation error has the form of the specification', () => {
  assert.deepEqual(statusJson(examples.BadRequest, context), {
    code: 3,
    message: 'Invalid argument: name: must not be empty; claim_match.issuer: must be a URL',
    details: [
      {
        '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
        reason: 'INVALID_ARGUMENT',
        domain: 'iam.wharfinger.dev',
      },
      {
        '@type': 'type.googleapis.com/google.rpc.BadRequest',
        fieldViolations: [
          { field: 'name', description: 'must not be empty' },
          { field: 'claim_match.issuer', description: 'must be a URL' },
        ],
      },
      { '@type': 'type.googleapis.com/google.rpc.RequestInfo', requestId: 'req-1' },
    ],
  });
});

test('the order of details is ErrorInfo, those of the error, RequestInfo', () => {
  const names = toStatus(alreadyExists('group', 'abc', 'name is taken'), context).details.map((any) => any.typeUrl);
  assert.deepEqual(names, [
    'type.googleapis.com/google.rpc.ErrorInfo',
    'type.googleapis.com/google.rpc.ResourceInfo',
    'type.googleapis.com/google.rpc.RequestInfo',
  ]);
});

test('metadata is in ErrorInfo, and without a method the domain is that of the service', () => {
  const { details } = statusJson(examples.none, { ...context, domain: undefined });
  assert.ok(Array.isArray(details));
  assert.deepEqual(details[0], {
    '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
    reason: 'PERMISSION_DENIED',
    domain: 'wharfinger.dev',
    metadata: { capability: 'groups.list' },
  });
});

test('half a surrogate pair is replaced', () => {
  const half = '\u{1f6a2}'.slice(0, 1);
  const error = new ApiError(Code.NOT_FOUND, half, [
    { type: 'ResourceInfo', resourceType: half, resourceName: half, description: half },
    { type: 'BadRequest', fieldViolations: [{ field: half, description: half }] },
    { type: 'PreconditionFailure', violations: [{ type: half, subject: half, description: half }] },
  ]);
  const overTheWire = fromBinary(StatusSchema, toBinary(StatusSchema, toStatus(error, context)));
  assert.deepEqual(toJson(StatusSchema, overTheWire, { registry }), statusJson(error, context));
});

test('codes map to HTTP', () => {
  const expected: Record<CodeName, number> = {
    OK: 200,
    INVALID_ARGUMENT: 400,
    FAILED_PRECONDITION: 400,
    OUT_OF_RANGE: 400,
    UNAUTHENTICATED: 401,
    PERMISSION_DENIED: 403,
    NOT_FOUND: 404,
    ALREADY_EXISTS: 409,
    ABORTED: 409,
    RESOURCE_EXHAUSTED: 429,
    CANCELLED: 499,
    INTERNAL: 500,
    UNKNOWN: 500,
    DATA_LOSS: 500,
    UNIMPLEMENTED: 501,
    UNAVAILABLE: 503,
    DEADLINE_EXCEEDED: 504,
  };
  for (const [name, status] of Object.entries(expected)) assert.equal(httpStatus(Code[name as CodeName]), status, name);
});
