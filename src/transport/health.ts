import type { Server, ServerUnaryCall, ServerWritableStream, sendUnaryData } from '@grpc/grpc-js';
import { service as definition } from 'grpc-health-check';
import { Code } from '../base/errors.ts';

interface HealthRequest {
  readonly service: string;
}

interface HealthResponse {
  readonly status: 'SERVING' | 'NOT_SERVING' | 'SERVICE_UNKNOWN';
}

type Watcher = ServerWritableStream<HealthRequest, HealthResponse>;

/**
 * The health protocol (grpc.health.v1) for the server as a whole, whose name is empty, and for each of its services.
 * Messages come from `grpc-health-check`; its own handlers never end a watch and so would hold up every stop.
 */
export function addHealth(server: Server, services: Iterable<string>): { stop(): void } {
  const known = new Set(['', ...services]);
  const watchers = new Set<Watcher>();
  let serving = true;

  const statusOf = (service: string): HealthResponse['status'] => {
    if (!known.has(service)) return 'SERVICE_UNKNOWN';
    return serving ? 'SERVING' : 'NOT_SERVING';
  };

  server.addService(definition, {
    check({ request }: ServerUnaryCall<HealthRequest, HealthResponse>, respond: sendUnaryData<HealthResponse>) {
      if (known.has(request.service)) respond(null, { status: statusOf(request.service) });
      else respond({ code: Code.NOT_FOUND, details: 'Not found: no such service here' });
    },
    watch(call: Watcher) {
      watchers.add(call);
      call.on('cancelled', () => watchers.delete(call));
      call.write({ status: statusOf(call.request.service) });
    },
    list(_: unknown, respond: sendUnaryData<{ statuses: Record<string, HealthResponse> }>) {
      const statuses = Object.fromEntries([...known].map((service) => [service, { status: statusOf(service) }]));
      respond(null, { statuses });
    },
  });

  return {
    stop() {
      serving = false;
      for (const watcher of watchers) {
        watcher.write({ status: statusOf(watcher.request.service) });
        watcher.end();
      }
    },
  };
}
