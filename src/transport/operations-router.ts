import type { DescFile } from '@bufbuild/protobuf';
import { ApiError, Code } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { MemoryBudget } from '../base/memory-budget.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Method } from '../contract/method.ts';
import { loadGrpcOnFirstUse } from './grpc/load-on-first-use.ts';
import type { Limits } from './limits.ts';
import { createOperationalEndpoints } from './operational-endpoints.ts';
import { createProtocolRouter, type ProtocolRouter } from './protocol-router.ts';

export interface OperationsRouterOptions {
  readonly methods: readonly Method[];
  readonly files: () => readonly DescFile[];
  readonly metrics: Pick<Metrics, 'contentType' | 'text'>;
  readonly ready: () => Promise<void>;
  readonly limits: Limits;
  readonly unauthenticated: MemoryBudget;
  readonly serviceDomain: string;
  readonly newRequestId: () => string;
  readonly log: Log;
}

/** Serves the operations port: health, readiness, metrics and gRPC reflection, but no method of the contract. */
export function createOperationsRouter(options: OperationsRouterOptions): ProtocolRouter {
  const { methods, files, metrics, ready, ...common } = options;
  const operational = createOperationalEndpoints({ metrics, ready, showDetails: true });
  return createProtocolRouter({
    ...common,
    http(req, res) {
      if (operational(req, res)) return;
      res.writeHead(404, { 'content-type': 'application/json' });
      res.end('{"status":"error","reason":"this port serves only /healthz, /readyz, /version and /metrics"}\n');
    },
    grpc: loadGrpcOnFirstUse({
      ...common,
      files,
      methods: [],
      healthServices: methods.map(({ id }) => id.slice(0, id.indexOf('/'))),
      isReflectionPublic: true,
      call: unavailable,
      authenticate: unavailable,
    }),
  });
}

function unavailable(): never {
  throw new ApiError(Code.UNIMPLEMENTED, 'Unimplemented: this port serves only health checks and reflection');
}
