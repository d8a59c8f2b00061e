import { Code, type CodeName } from '../../base/errors.ts';
import { refTo } from './schemas.ts';
import type { Json, Response, Schema } from './types.ts';

const string = (description: string): Schema => ({ type: 'string', description });

const list = (description: string, properties: Readonly<Record<string, Schema>>): Schema => ({
  type: 'array',
  description,
  items: { type: 'object', properties },
});

const typeUrl = (name: string): string => `type.googleapis.com/google.rpc.${name}`;

const detail = (name: string, description: string, properties: Readonly<Record<string, Schema>>): Schema => ({
  type: 'object',
  description,
  properties: { '@type': { type: 'string', const: typeUrl(name) }, ...properties },
  required: ['@type'],
});

const details: Readonly<Record<string, Schema>> = {
  ErrorInfo: detail('ErrorInfo', 'Why the call failed, for programs. Every error has it.', {
    reason: string('The name of the code, such as `INVALID_ARGUMENT`.'),
    domain: string('The API domain of the method, followed by the domain name of the service.'),
    metadata: {
      type: 'object',
      description: 'Further facts, such as the missing capability.',
      additionalProperties: { type: 'string' },
    },
  }),
  BadRequest: detail('BadRequest', 'What is wrong with the request. Part of INVALID_ARGUMENT.', {
    fieldViolations: list('One entry for each invalid field.', {
      field: string('The path to the field or parameter.'),
      description: string('What is wrong with the field, and what is valid.'),
    }),
  }),
  PreconditionFailure: detail(
    'PreconditionFailure',
    'The preconditions that are not met. Part of FAILED_PRECONDITION.',
    {
      violations: list('One entry for each precondition.', {
        type: string('The type of the precondition, such as `RESOURCE_NOT_EMPTY`.'),
        subject: string('The resource that does not meet it.'),
        description: string('What is wrong, and what to do.'),
      }),
    },
  ),
  ResourceInfo: detail('ResourceInfo', 'The resource that the error is about. Part of NOT_FOUND and ALREADY_EXISTS.', {
    resourceType: string('Its kind.'),
    resourceName: string('Its uid or name.'),
    description: string('What is wrong with the resource.'),
  }),
  QuotaFailure: detail('QuotaFailure', 'The limits that the call would exceed. Part of RESOURCE_EXHAUSTED.', {
    violations: list('One entry for each limit.', {
      subject: string('What the limit is for, such as `organization:` and its uid.'),
      description: string('Which limit it is, and what to do.'),
    }),
  }),
  RetryInfo: detail('RetryInfo', 'When a retry can succeed. Part of RESOURCE_EXHAUSTED, with the header Retry-After.', {
    retryDelay: string('The delay in seconds, such as `1.500s`.'),
  }),
  RequestInfo: detail('RequestInfo', 'Identifies the call in the log of the server. Every error has it.', {
    requestId: string('The id of the request.'),
  }),
};

const component = (name: string): string => `google.rpc.${name}`;

const status: Schema = {
  type: 'object',
  description: 'An error. Programs should branch on the HTTP status and the typed details, never on the message.',
  properties: {
    code: { type: 'integer', format: 'int32', description: 'A number of google.rpc.Code: 5 is NOT_FOUND.' },
    message: string('What went wrong, for people.'),
    details: {
      type: 'array',
      items: {
        oneOf: Object.keys(details).map((name) => refTo(component(name))),
        discriminator: {
          propertyName: '@type',
          mapping: Object.fromEntries(
            Object.keys(details).map((name) => [typeUrl(name), `#/components/schemas/${component(name)}`]),
          ),
        },
      },
    },
  },
  required: ['code', 'message', 'details'],
};

export const errorSchemas: Readonly<Record<string, Schema>> = {
  [component('Status')]: status,
  ...Object.fromEntries(Object.entries(details).map(([name, schema]) => [component(name), schema])),
};

const example = (summary: string, code: CodeName, message: string, ...typed: { [key: string]: Json }[]) => ({
  summary,
  value: {
    code: Code[code],
    message,
    details: [
      { '@type': typeUrl('ErrorInfo'), reason: code, domain: 'iam.wharfinger.dev' },
      ...typed,
      { '@type': typeUrl('RequestInfo'), requestId: '01980f3e-5c7a-7b21-9d64-3f8e2a1b0c9d' },
    ],
  },
});

const notFoundMessage = 'Not found: group 5f0c1d6b7a8e4923b1c0d9e8f7a6b5c4d3e2f1a0';

export const errorResponse: Response = {
  description:
    'Any error. The HTTP status follows from the code: 400, 401, 403, 404, 409, 429, 499, 500, 501, 503 or 504.',
  content: {
    'application/json': {
      schema: refTo(component('Status')),
      examples: {
        invalidArgument: example(
          'A field has an invalid value (HTTP 400)',
          'INVALID_ARGUMENT',
          'Invalid argument: name: must match ^[a-z0-9 ._-]{1,}$',
          {
            '@type': typeUrl('BadRequest'),
            fieldViolations: [{ field: 'name', description: 'must match ^[a-z0-9 ._-]{1,}$' }],
          },
        ),
        unauthenticated: example(
          'The token is missing, expired or not for this server (HTTP 401)',
          'UNAUTHENTICATED',
          'Unauthenticated: send a token in the Authorization header',
        ),
        notFound: example('The resource does not exist (HTTP 404)', 'NOT_FOUND', notFoundMessage, {
          '@type': typeUrl('ResourceInfo'),
          resourceType: 'group',
          resourceName: '5f0c1d6b7a8e4923b1c0d9e8f7a6b5c4d3e2f1a0',
        }),
        resourceExhausted: example(
          'A quota or a rate limit is exceeded (HTTP 429)',
          'RESOURCE_EXHAUSTED',
          'Resource exhausted: an identity may send 2000 requests per second; send fewer, and retry after the delay',
          {
            '@type': typeUrl('QuotaFailure'),
            violations: [
              {
                subject: 'identity:5f0c1d6b7a8e4923b1c0d9e8f7a6b5c4d3e2f1a0',
                description: 'an identity may send 2000 requests per second; send fewer, and retry after the delay',
              },
            ],
          },
          { '@type': typeUrl('RetryInfo'), retryDelay: '0.010s' },
        ),
        failedPrecondition: example(
          'A precondition is not met (HTTP 400)',
          'FAILED_PRECONDITION',
          'Precondition failed: cannot delete group with child groups',
          {
            '@type': typeUrl('PreconditionFailure'),
            violations: [{ type: 'RESOURCE_NOT_EMPTY', description: 'cannot delete group with child groups' }],
          },
        ),
      },
    },
  },
};
