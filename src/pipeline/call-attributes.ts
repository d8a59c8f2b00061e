import { Code, codeName } from '../base/errors.ts';
import { httpStatus } from '../base/http-status.ts';
import type { SpanAttributes, SpanFailure } from '../base/tracing.ts';
import type { ObservedCall } from './observe.ts';

// The attributes of the span of a call, by the semantic conventions of OpenTelemetry for HTTP and RPC. The path is the
// template of the route and not what the client sent: upload ids in paths are secrets.

export const callAttributes = ({ method, wire, requestId, peer, route }: ObservedCall): SpanAttributes => ({
  'wharf.wire': wire,
  'wharf.request_id': requestId,
  'client.address': peer.address,
  ...(wire === 'grpc'
    ? { 'rpc.system.name': 'grpc', 'rpc.method': method.id }
    : { 'http.request.method': route?.verb, 'http.route': route?.template }),
});

export const endAttributes = (
  { wire }: Pick<ObservedCall, 'wire'>,
  code: Code,
  status = httpStatus(code),
): SpanAttributes =>
  wire === 'grpc' ? { 'rpc.status_code': codeName(code) } : { 'http.response.status_code': status };

const FAULTS: ReadonlySet<Code> = new Set([
  ...[Code.UNKNOWN, Code.DEADLINE_EXCEEDED, Code.UNIMPLEMENTED, Code.INTERNAL, Code.UNAVAILABLE, Code.DATA_LOSS],
]);

export const failureOf = (code: Code): SpanFailure | undefined =>
  code === Code.OK ? undefined : { type: codeName(code), isFault: FAULTS.has(code) };
