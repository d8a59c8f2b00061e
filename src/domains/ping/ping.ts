import { create } from '@bufbuild/protobuf';
import { PingResponseSchema, PingService } from '../../contract/gen/chainguard/platform/ping/v2/ping_pb.js';
import { readOperation } from '../../resource/operation.ts';

export const pingOperations = readOperation(PingService.method.ping, () =>
  create(PingResponseSchema, { response: 'pong' }),
);
