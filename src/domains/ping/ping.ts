import { create } from '@bufbuild/protobuf';
import { PingResponseSchema, PingService } from '../../contract/gen/chainguard/platform/ping/v2/ping_pb.js';
import type { Operations } from '../../resource/operation.ts';

export const pingOperations: Operations = {
  [`${PingService.typeName}/Ping`]: {
    mode: 'read',
    run: () => create(PingResponseSchema, { response: 'pong' }),
  },
};
