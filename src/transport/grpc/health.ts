import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import type { Server, ServerUnaryCall, ServerWritableStream, sendUnaryData } from '@grpc/grpc-js';
import { Code } from '../../base/errors.ts';

/** HealthCheckResponse.ServingStatus */
const Status = { SERVING: 1, NOT_SERVING: 2, SERVICE_UNKNOWN: 3 } as const;
type Status = (typeof Status)[keyof typeof Status];

interface HealthRequest {
  readonly service: string;
}

type Watcher = ServerWritableStream<HealthRequest, Status>;
type Statuses = readonly (readonly [service: string, Status])[];

/**
 * The health protocol (grpc.health.v1) for the server as a whole, whose name is empty, and for each of its services.
 * Its three messages are written here: the package `grpc-health-check` loads a second implementation of protobuf for
 * them, 8 MB that each server would carry, and its handlers never end a watch and so would hold up every stop.
 */
export function addHealth(server: Server, services: Iterable<string>): { stop(): void } {
  const known = new Set(['', ...services]);
  const watchers = new Set<Watcher>();
  let serving = true;

  const statusOf = (service: string): Status => {
    if (!known.has(service)) return Status.SERVICE_UNKNOWN;
    return serving ? Status.SERVING : Status.NOT_SERVING;
  };

  const check = ({ request }: ServerUnaryCall<HealthRequest, Status>, respond: sendUnaryData<Status>): void => {
    if (known.has(request.service)) respond(null, statusOf(request.service));
    else respond({ code: Code.NOT_FOUND, details: 'Not found: no such service here' });
  };
  const watch = (call: Watcher): void => {
    watchers.add(call);
    call.on('cancelled', () => watchers.delete(call));
    call.write(statusOf(call.request.service));
  };
  const list = (_: unknown, respond: sendUnaryData<Statuses>): void =>
    respond(
      null,
      [...known].map((service) => [service, statusOf(service)]),
    );
  server.register('/grpc.health.v1.Health/Check', check, writeStatus, readRequest, 'unary');
  server.register('/grpc.health.v1.Health/Watch', watch, writeStatus, readRequest, 'serverStream');
  server.register('/grpc.health.v1.Health/List', list, writeStatuses, readRequest, 'unary');

  return {
    stop() {
      serving = false;
      for (const watcher of watchers) {
        watcher.write(statusOf(watcher.request.service));
        watcher.end();
      }
    },
  };
}

/** Also of List, whose request is empty. */
function readRequest(request: Buffer): HealthRequest {
  const reader = new BinaryReader(request);
  let service = '';
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (field === 1 && type === WireType.LengthDelimited) service = reader.string();
    else reader.skip(type, field);
  }
  return { service };
}

const response = (status: Status): Uint8Array => new BinaryWriter().tag(1, WireType.Varint).int32(status).finish();

const writeStatus = (status: Status): Buffer => Buffer.from(response(status));

/** HealthListResponse: a map, whose entries are messages of a key and a value. */
function writeStatuses(statuses: Statuses): Buffer {
  const writer = new BinaryWriter();
  for (const [service, status] of statuses) {
    writer.tag(1, WireType.LengthDelimited).fork();
    writer.tag(1, WireType.LengthDelimited).string(service);
    writer.tag(2, WireType.LengthDelimited).bytes(response(status));
    writer.join();
  }
  return Buffer.from(writer.finish());
}
