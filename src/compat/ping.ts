import { PingService } from '../contract/gen/chainguard/platform/ping/v2/ping_pb.js';
import { PingService as V1PingService } from '../contract/gen/platform/ping/v1/ping.platform_pb.js';
import type { Operations } from '../resource/operation.ts';
import { adapt } from './adapt.ts';

export const pingOperations = (operations: Operations): Operations =>
  adapt(operations, V1PingService.method.ping, PingService.method.ping, {
    request: () => ({}),
    response: ({ response }) => ({ response }),
  });
