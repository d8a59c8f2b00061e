import type { DescMessage, JsonObject, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { create, toJson } from '@bufbuild/protobuf';
import type { Any } from '@bufbuild/protobuf/wkt';
import { anyPack, durationFromMs } from '@bufbuild/protobuf/wkt';
import type { ApiError, Detail } from '../base/errors.ts';
import { codeName } from '../base/errors.ts';
import { traceIdOf } from '../base/tracing.ts';
import { TermsNotAcceptedDetailSchema as TermsNotAcceptedV2Schema } from '../contract/gen/chainguard/platform/iam/v2/terms_pb.js';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  PreconditionFailureSchema,
  QuotaFailureSchema,
  RequestInfoSchema,
  ResourceInfoSchema,
  RetryInfoSchema,
} from '../contract/gen/google/rpc/error_details_pb.js';
import type { Status } from '../contract/gen/google/rpc/status_pb.js';
import { StatusSchema } from '../contract/gen/google/rpc/status_pb.js';
import { TermsNotAcceptedDetailSchema as TermsNotAcceptedV1Schema } from '../contract/gen/platform/iam/v1/terms.platform_pb.js';

/** The facts about a failed call that its error does not have. */
export interface ErrorContext {
  /** The API domain, such as `iam`; undefined when the request matched no method. */
  readonly domain: string | undefined;
  readonly serviceDomain: string;
  readonly requestId: string;
}

/** The google.rpc.Status of an error, which gRPC sends in `grpc-status-details-bin`. */
export const toStatus = (error: ApiError, context: ErrorContext): Status =>
  create(StatusSchema, {
    code: error.code,
    message: error.message.toWellFormed(),
    details: details(error, context).map((detail) => detail.any()),
  });

/** The JSON body of an error over REST. It has the details of `toStatus`, because both are made from one list. */
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
  const traceId = traceIdOf(error);
  return [
    encodable(ErrorInfoSchema, {
      reason: codeName(error.code),
      domain: domain === undefined ? serviceDomain : `${domain}.${serviceDomain}`,
      metadata: wellFormed(error.metadata),
    }),
    ...error.details.map(encodeDetail),
    encodable(RequestInfoSchema, { requestId, ...(traceId !== undefined && { servingData: `trace ${traceId}` }) }),
  ];
}

function encodeDetail(detail: Detail): EncodableDetail {
  switch (detail.type) {
    case 'BadRequest':
      return encodable(BadRequestSchema, { fieldViolations: detail.fieldViolations.map(wellFormed) });
    case 'PreconditionFailure':
      return encodable(PreconditionFailureSchema, { violations: detail.violations.map(wellFormed) });
    case 'ResourceInfo': {
      const { type: _, ...fields } = detail;
      return encodable(ResourceInfoSchema, wellFormed(fields));
    }
    case 'QuotaFailure':
      return encodable(QuotaFailureSchema, { violations: detail.violations.map(wellFormed) });
    case 'TermsNotAccepted':
      return encodable(detail.version === 'v1' ? TermsNotAcceptedV1Schema : TermsNotAcceptedV2Schema, {
        missing: detail.missing.map(wellFormed),
      });
    case 'RetryInfo':
      return encodable(RetryInfoSchema, { retryDelay: durationFromMs(Math.ceil(detail.delayMs)) });
  }
}

function encodable<Desc extends DescMessage>(schema: Desc, init: MessageInitShape<Desc>): EncodableDetail {
  const message: MessageShape<Desc> = create(schema, init);
  return {
    any: () => anyPack(schema, message),
    json: () => ({ '@type': `type.googleapis.com/${schema.typeName}`, ...(toJson(schema, message) as JsonObject) }),
  };
}

/** Replaces half surrogate pairs, which cannot be encoded: the encoding of an error must not fail. */
const wellFormed = <T extends { readonly [K in keyof T]: string }>(fields: T): T =>
  Object.fromEntries(Object.entries<string>(fields).map(([key, text]) => [key, text.toWellFormed()])) as T;
