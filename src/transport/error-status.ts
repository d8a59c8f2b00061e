import type { DescMessage, JsonObject, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { create, toJson } from '@bufbuild/protobuf';
import type { Any } from '@bufbuild/protobuf/wkt';
import { anyPack } from '@bufbuild/protobuf/wkt';
import type { ApiError, Detail } from '../base/errors.ts';
import { Code, codeName } from '../base/errors.ts';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  PreconditionFailureSchema,
  RequestInfoSchema,
  ResourceInfoSchema,
} from '../contract/gen/google/rpc/error_details_pb.js';
import type { Status } from '../contract/gen/google/rpc/status_pb.js';
import { StatusSchema } from '../contract/gen/google/rpc/status_pb.js';

/** What the edge knows about a failed call and the error itself does not. */
export interface ErrorContext {
  /** `iam`, `registry`...; undefined when no method was reached. */
  readonly domain: string | undefined;
  readonly serviceDomain: string;
  readonly requestId: string;
}

/** The google.rpc.Status of an error, as gRPC carries it in `grpc-status-details-bin`. */
export const toStatus = (error: ApiError, context: ErrorContext): Status =>
  create(StatusSchema, {
    code: error.code,
    message: error.message.toWellFormed(),
    details: details(error, context).map((detail) => detail.any()),
  });

/** The same as the JSON body of REST; both come from one list of details, so the wires cannot drift apart. */
export const statusJson = (error: ApiError, context: ErrorContext): JsonObject => ({
  code: error.code,
  message: error.message.toWellFormed(),
  details: details(error, context).map((detail) => detail.json()),
});

interface EncodableDetail {
  any(): Any;
  json(): JsonObject;
}

function details(error: ApiError, { domain, serviceDomain, requestId }: ErrorContext): EncodableDetail[] {
  return [
    encodable(ErrorInfoSchema, {
      reason: codeName(error.code),
      domain: domain === undefined ? serviceDomain : `${domain}.${serviceDomain}`,
      metadata: wellFormed(error.metadata),
    }),
    ...error.details.map(ownDetail),
    encodable(RequestInfoSchema, { requestId }),
  ];
}

function ownDetail(detail: Detail): EncodableDetail {
  switch (detail.type) {
    case 'BadRequest':
      return encodable(BadRequestSchema, { fieldViolations: detail.fieldViolations.map(wellFormed) });
    case 'PreconditionFailure':
      return encodable(PreconditionFailureSchema, { violations: detail.violations.map(wellFormed) });
    case 'ResourceInfo': {
      const { type: _, ...fields } = detail;
      return encodable(ResourceInfoSchema, wellFormed(fields));
    }
  }
}

function encodable<Desc extends DescMessage>(schema: Desc, init: MessageInitShape<Desc>): EncodableDetail {
  const message: MessageShape<Desc> = create(schema, init);
  return {
    any: () => anyPack(schema, message),
    json: () => ({ '@type': `type.googleapis.com/${schema.typeName}`, ...(toJson(schema, message) as JsonObject) }),
  };
}

/** Text cut in the middle of a surrogate pair cannot be encoded, and the answer to a failure must not fail itself. */
const wellFormed = <T extends { readonly [K in keyof T]: string }>(fields: T): T =>
  Object.fromEntries(Object.entries<string>(fields).map(([key, text]) => [key, text.toWellFormed()])) as T;

const httpStatuses: Readonly<Record<Code, number>> = {
  [Code.OK]: 200,
  [Code.INVALID_ARGUMENT]: 400,
  [Code.FAILED_PRECONDITION]: 400,
  [Code.OUT_OF_RANGE]: 400,
  [Code.UNAUTHENTICATED]: 401,
  [Code.PERMISSION_DENIED]: 403,
  [Code.NOT_FOUND]: 404,
  [Code.ALREADY_EXISTS]: 409,
  [Code.ABORTED]: 409,
  [Code.RESOURCE_EXHAUSTED]: 429,
  // Not registered, but what proxies log for a client that went away.
  [Code.CANCELLED]: 499,
  [Code.UNKNOWN]: 500,
  [Code.INTERNAL]: 500,
  [Code.DATA_LOSS]: 500,
  [Code.UNIMPLEMENTED]: 501,
  [Code.UNAVAILABLE]: 503,
  [Code.DEADLINE_EXCEEDED]: 504,
};

export const httpStatus = (code: Code): number => httpStatuses[code];
