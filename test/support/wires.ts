import {
  create,
  createRegistry,
  type DescMethodUnary,
  fromBinary,
  fromJson,
  type JsonObject,
  type JsonValue,
  type MessageInitShape,
  type MessageShape,
  toBinary,
  toJson,
} from '@bufbuild/protobuf';
import { type ChannelOptions, credentials, Client as GrpcClient, Metadata, type ServiceError } from '@grpc/grpc-js';
import { TermsNotAcceptedDetailSchema as TermsNotAcceptedV2Schema } from '../../src/contract/gen/chainguard/platform/iam/v2/terms_pb.js';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  PreconditionFailureSchema,
  QuotaFailureSchema,
  RequestInfoSchema,
  ResourceInfoSchema,
  RetryInfoSchema,
} from '../../src/contract/gen/google/rpc/error_details_pb.js';
import { StatusSchema } from '../../src/contract/gen/google/rpc/status_pb.js';
import { TermsNotAcceptedDetailSchema as TermsNotAcceptedV1Schema } from '../../src/contract/gen/platform/iam/v1/terms.platform_pb.js';
import { files, methodTable } from '../../src/contract/method-table.ts';
import { withV2beta1 } from '../../src/contract/v2beta1.ts';

/** An error response, in the same form for both wires. */
export class CallError extends Error {
  readonly code: number;
  readonly details: readonly JsonObject[];
  /** The header or metadata entry `retry-after`. */
  readonly retryAfter: string | undefined;

  constructor(code: number, message: string, details: readonly JsonObject[], retryAfter?: string | undefined) {
    super(message);
    this.code = code;
    this.details = details;
    this.retryAfter = retryAfter;
  }

  /** The details of one type, such as `BadRequest`. */
  detail(name: string): JsonObject | undefined {
    return this.details.find((detail) => String(detail['@type']).endsWith(`.${name}`));
  }

  /** The fields that the BadRequest detail names. */
  get fields(): string[] {
    const violations = (this.detail('BadRequest')?.fieldViolations ?? []) as { field: string }[];
    return violations.map(({ field }) => field);
  }
}

export interface CallOptions {
  readonly token?: string | undefined;
  /** The method id to call instead of the method's own, such as its v2beta1 id. */
  readonly id?: string;
  /** The request id that the server uses in its log. */
  readonly requestId?: string;
  /** Gets the headers of the response (gRPC: its leading metadata). */
  readonly onHeaders?: (headerOf: (name: string) => string | undefined) => void;
  /** Receives the JSON of a successful response over REST. */
  readonly onJson?: (json: JsonValue) => void;
}

const idOf = ({ parent, name }: DescMethodUnary): string => `${parent.typeName}/${name}`;

/** A client that calls any method of the contract over one wire. */
export interface Client {
  call<M extends DescMethodUnary>(
    method: M,
    request?: MessageInitShape<M['input']>,
    options?: CallOptions,
  ): Promise<MessageShape<M['output']>>;
  close(): void;
}

export interface Wire {
  readonly name: 'REST' | 'gRPC';
  connect(url: string, token: string | undefined): Client;
}

export const wires: readonly Wire[] = [
  { name: 'REST', connect: restClient },
  { name: 'gRPC', connect: (url, token) => grpcClient(url, token) },
];

const registry = createRegistry(
  ErrorInfoSchema,
  BadRequestSchema,
  PreconditionFailureSchema,
  QuotaFailureSchema,
  ResourceInfoSchema,
  RequestInfoSchema,
  RetryInfoSchema,
  TermsNotAcceptedV1Schema,
  TermsNotAcceptedV2Schema,
);

const routes = new Map(withV2beta1(methodTable(files)).map((method) => [method.id, method.routes[0]]));

function restClient(url: string, defaultToken: string | undefined): Client {
  return {
    async call(method, request, options: CallOptions = { token: defaultToken }) {
      const route = routes.get(options.id ?? idOf(method));
      if (!route) throw new Error(`${method.name} has no route`);
      const message = create(method.input, request as never);
      const json = toJson(method.input, message) as JsonObject;
      const path = route.template.replace(/\{([\w.]+)(?:=([^}]*))?\}/g, (_, name: string, pattern?: string) => {
        const value = String(removeField(json, name) ?? '');
        return pattern === '**' ? value : encodeURIComponent(value);
      });
      const bodyKind = method.input.fields.find(({ name }) => name === route.body)?.fieldKind;
      const emptyBody = bodyKind === 'list' ? [] : bodyKind === 'enum' ? null : {};
      const body = route.body === '*' ? json : route.body ? removeField(json, route.body) : undefined;
      const query = route.body === '*' ? '' : new URLSearchParams(queryParameters(json)).toString();
      const response = await fetch(`${url}${path}${query && `?${query}`}`, {
        method: route.verb,
        headers: {
          ...(options.token !== undefined && { authorization: `Bearer ${options.token}` }),
          ...(route.body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(route.body !== undefined && { body: JSON.stringify(body ?? emptyBody) }),
      });
      options.onHeaders?.((name) => response.headers.get(name) ?? undefined);
      const text = await response.text();
      if (response.ok) {
        const json = text === '' ? {} : JSON.parse(text);
        options.onJson?.(json);
        return fromJson(method.output, json) as never;
      }
      const error = JSON.parse(text);
      throw new CallError(error.code, error.message, error.details, response.headers.get('retry-after') ?? undefined);
    },
    close() {},
  };
}

/** Removes the field at a dotted proto path from a JSON message, and returns its value. */
function removeField(json: JsonObject, path: string): JsonValue | undefined {
  const [name = '', ...rest] = path.split('.');
  const key = name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  if (rest.length > 0)
    return json[key] === undefined ? undefined : removeField(json[key] as JsonObject, rest.join('.'));
  const value = json[key];
  delete json[key];
  return value;
}

/** The query parameters of a JSON message: nested names are dotted, lists repeat, and messages in lists are JSON. */
function queryParameters(json: JsonObject, prefix = ''): [string, string][] {
  return Object.entries(json).flatMap(([key, value]): [string, string][] => {
    if (Array.isArray(value)) return value.map((item) => [prefix + key, textOf(item)]);
    if (typeof value === 'object' && value !== null) return queryParameters(value, `${prefix}${key}.`);
    return [[prefix + key, String(value)]];
  });
}

const textOf = (value: JsonValue): string => (typeof value === 'object' ? JSON.stringify(value) : String(value));

export function grpcClient(url: string, defaultToken: string | undefined, options: ChannelOptions = {}): Client {
  const client = new GrpcClient(new URL(url).host, credentials.createInsecure(), options);
  return {
    call(method, request, options: CallOptions = { token: defaultToken }) {
      const metadata = new Metadata();
      if (options.token !== undefined) metadata.set('authorization', `Bearer ${options.token}`);
      if (options.requestId !== undefined) metadata.set('x-request-id', options.requestId);
      return new Promise((resolve, reject) => {
        const call = client.makeUnaryRequest(
          `/${options.id ?? idOf(method)}`,
          (message: Uint8Array) => Buffer.from(message),
          (bytes: Buffer) => fromBinary(method.output, bytes),
          toBinary(method.input, create(method.input, request as never)),
          metadata,
          (error, response) => (error ? reject(callError(error)) : resolve(response as never)),
        );
        call.on('metadata', (headers) => options.onHeaders?.((name) => headers.get(name)[0]?.toString()));
      });
    },
    close: () => client.close(),
  };
}

function callError(error: ServiceError): CallError {
  const [bytes] = error.metadata.get('grpc-status-details-bin');
  if (!(bytes instanceof Buffer)) return new CallError(error.code, error.details, []);
  const status = toJson(StatusSchema, fromBinary(StatusSchema, bytes), { registry }) as JsonObject;
  const retryAfter = error.metadata.get('retry-after')[0]?.toString();
  return new CallError(error.code, error.details, status.details as JsonObject[], retryAfter);
}
