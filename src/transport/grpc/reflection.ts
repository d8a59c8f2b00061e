import type { DescFile, MessageInitShape } from '@bufbuild/protobuf';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import type { Server, ServerDuplexStream, StatusObject } from '@grpc/grpc-js';
import { ApiError, Code } from '../../base/errors.ts';
import type { MaybePromise } from '../../base/maybe-promise.ts';
import {
  type ServerReflectionRequest,
  ServerReflectionRequestSchema,
  ServerReflectionResponseSchema,
} from '../../contract/gen/grpc/reflection/v1/reflection_pb.js';
import { type DescriptorIndex, indexFiles, withDependencies } from './descriptor-index.ts';

export interface ReflectionOptions {
  /** Throws if the caller may not use reflection. */
  readonly authorize: (call: Pick<ReflectionStream, 'getPeer' | 'metadata'>) => MaybePromise<unknown>;
  readonly statusOf: (error: ApiError, requestId: string) => StatusObject;
  readonly newRequestId: () => string;
}

type ReflectionStream = ServerDuplexStream<Buffer, Buffer>;

/**
 * Registers gRPC server reflection, for tools such as grpcurl, and returns its paths. The package `@grpc/reflection` is
 * not used: it re-encodes the descriptors without their custom options, which are the routes, capabilities and field
 * behaviours of the contract.
 */
export function addReflection(
  server: Server,
  files: () => readonly DescFile[],
  { authorize, statusOf, newRequestId }: ReflectionOptions,
): ReadonlySet<string> {
  // Built on the first request: most servers never receive one.
  let index: DescriptorIndex | undefined;
  const serve = (stream: ReflectionStream): void => {
    index ??= indexFiles(files());
    const builtIndex = index;
    stream.on('data', (request: Buffer) => {
      if (stream.write(respond(builtIndex, request))) return;
      // The next request is read when the client has taken the responses.
      stream.pause();
      stream.once('drain', () => stream.resume());
    });
    stream.on('end', () => stream.end());
  };
  const refuse = (stream: ReflectionStream, error: unknown): void => {
    const apiError = error instanceof ApiError ? error : new ApiError(Code.INTERNAL, 'Internal: the call failed');
    stream.emit('error', statusOf(apiError, newRequestId()));
  };
  const serveAuthorized = async (stream: ReflectionStream): Promise<void> => {
    try {
      await authorize(stream);
    } catch (error) {
      refuse(stream, error);
      return;
    }
    serve(stream);
  };
  // The messages of both versions are the same.
  const paths = ['v1', 'v1alpha'].map((version) => `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`);
  for (const path of paths) {
    // Requests are decoded in `respond`: an error in a deserializer of the library ends the stream with INTERNAL.
    server.register(path, (stream: ReflectionStream) => void serveAuthorized(stream), unchanged, unchanged, 'bidi');
  }
  return new Set(paths);
}

const unchanged = (bytes: Buffer): Buffer => bytes;

type QueryResult = NonNullable<MessageInitShape<typeof ServerReflectionResponseSchema>['messageResponse']>;

function respond(index: DescriptorIndex, bytes: Buffer): Buffer {
  const request = decodeRequest(bytes);
  const response = create(ServerReflectionResponseSchema, {
    ...(request && { validHost: request.host, originalRequest: request }),
    messageResponse: request
      ? runQuery(index, request.messageRequest)
      : failure(Code.INVALID_ARGUMENT, 'request must be a valid ServerReflectionRequest'),
  });
  return Buffer.from(toBinary(ServerReflectionResponseSchema, response));
}

function decodeRequest(bytes: Buffer): ServerReflectionRequest | undefined {
  try {
    return fromBinary(ServerReflectionRequestSchema, bytes);
  } catch {
    return undefined;
  }
}

function runQuery(index: DescriptorIndex, query: ServerReflectionRequest['messageRequest']): QueryResult {
  switch (query.case) {
    case 'listServices':
      return { case: 'listServicesResponse', value: { service: index.services.map((name) => ({ name })) } };
    case 'fileByFilename':
      return fileResult(index.byName.get(query.value), `file ${query.value}`);
    case 'fileContainingSymbol':
      return fileResult(index.bySymbol.get(query.value), `symbol ${query.value}`);
    case 'fileContainingExtension': {
      const { containingType, extensionNumber } = query.value;
      const file = index.extensions.get(containingType)?.get(extensionNumber);
      return fileResult(file, `extension ${extensionNumber} of ${containingType}`);
    }
    case 'allExtensionNumbersOfType': {
      const baseTypeName = query.value;
      if (!index.bySymbol.has(baseTypeName)) return notFound(`type ${baseTypeName}`);
      const extensionNumber = [...(index.extensions.get(baseTypeName)?.keys() ?? [])];
      return { case: 'allExtensionNumbersResponse', value: { baseTypeName, extensionNumber } };
    }
    default:
      return failure(Code.UNIMPLEMENTED, 'this server does not support this kind of reflection request');
  }
}

/** The file and all files that it imports, so that the client needs no further request. */
function fileResult(file: DescFile | undefined, description: string): QueryResult {
  if (file === undefined) return notFound(description);
  const fileDescriptorProto = [...withDependencies([file])].map(encodedFile);
  return { case: 'fileDescriptorResponse', value: { fileDescriptorProto } };
}

const encodedFiles = new WeakMap<DescFile, Uint8Array>();

/** Encodes each file once: with its imports it can take 30 ms. */
function encodedFile(file: DescFile): Uint8Array {
  const bytes = encodedFiles.get(file) ?? toBinary(FileDescriptorProtoSchema, file.proto);
  encodedFiles.set(file, bytes);
  return bytes;
}

const notFound = (description: string): QueryResult => failure(Code.NOT_FOUND, `this server has no ${description}`);

const failure = (errorCode: Code, errorMessage: string): QueryResult => ({
  case: 'errorResponse',
  value: { errorCode, errorMessage },
});
