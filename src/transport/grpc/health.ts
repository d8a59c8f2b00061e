import { create, type DescMessage, fromBinary, type MessageShape, toBinary } from '@bufbuild/protobuf';
import type { Server, ServerUnaryCall, ServerWritableStream, sendUnaryData } from '@grpc/grpc-js';
import { Code } from '../../base/errors.ts';
import {
  type HealthCheckRequest,
  HealthCheckRequestSchema,
  type HealthCheckResponse,
  HealthCheckResponseSchema,
  HealthListRequestSchema,
  type HealthListResponse,
  HealthListResponseSchema,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '../../contract/gen/grpc/health/v1/health_pb.js';

/**
 * Registers the health protocol (grpc.health.v1) for the server as a whole, whose name is empty, and for each of its
 * services. The package `grpc-health-check` is not used for two reasons:
 * it loads a second implementation of protobuf, which takes 8 MB,
 * and it never ends the streams of Watch, so that a server could not stop while a client watches.
 */
export function addHealth(server: Server, serviceNames: Iterable<string>): { stop(): void } {
  const names = new Set(['', ...serviceNames]);
  const watchers = new Set<ServerWritableStream<HealthCheckRequest, HealthCheckResponse>>();
  let isServing = true;

  const responseFor = (service: string): HealthCheckResponse => {
    const servingStatus = isServing ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
    return create(HealthCheckResponseSchema, {
      status: names.has(service) ? servingStatus : ServingStatus.SERVICE_UNKNOWN,
    });
  };

  const check = (
    { request: { service } }: ServerUnaryCall<HealthCheckRequest, HealthCheckResponse>,
    respond: sendUnaryData<HealthCheckResponse>,
  ): void => {
    if (names.has(service)) respond(null, responseFor(service));
    else respond({ code: Code.NOT_FOUND, details: 'Not found: this server has no such service' });
  };
  const watch = (call: ServerWritableStream<HealthCheckRequest, HealthCheckResponse>): void => {
    call.write(responseFor(call.request.service));
    if (!isServing) {
      call.end();
      return;
    }
    watchers.add(call);
    call.on('cancelled', () => watchers.delete(call));
  };
  const list = (_: unknown, respond: sendUnaryData<HealthListResponse>): void => {
    const statuses = Object.fromEntries([...names].map((name) => [name, responseFor(name)]));
    respond(null, create(HealthListResponseSchema, { statuses }));
  };
  const [readCheck, writeCheck] = [reader(HealthCheckRequestSchema), writer(HealthCheckResponseSchema)];
  const [readList, writeList] = [reader(HealthListRequestSchema), writer(HealthListResponseSchema)];
  server.register('/grpc.health.v1.Health/Check', check, writeCheck, readCheck, 'unary');
  server.register('/grpc.health.v1.Health/Watch', watch, writeCheck, readCheck, 'serverStream');
  server.register('/grpc.health.v1.Health/List', list, writeList, readList, 'unary');

  return {
    stop() {
      isServing = false;
      for (const watcher of watchers) {
        watcher.write(responseFor(watcher.request.service));
        watcher.end();
      }
      watchers.clear();
    },
  };
}

const reader =
  <Desc extends DescMessage>(schema: Desc) =>
  (bytes: Buffer): MessageShape<Desc> =>
    fromBinary(schema, bytes);

const writer =
  <Desc extends DescMessage>(schema: Desc) =>
  (message: MessageShape<Desc>): Buffer =>
    Buffer.from(toBinary(schema, message));
