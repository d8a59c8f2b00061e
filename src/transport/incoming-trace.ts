import { type BlockList, isIP } from 'node:net';
import { parseTraceContext } from '../base/trace-context.ts';
import type { IncomingTrace } from '../base/tracing.ts';

/** Reads the trace that a request is part of, from the address of its connection and its headers. */
export type ReadIncomingTrace = (
  peer: string,
  traceparent: string | undefined,
  tracestate: string | undefined,
) => IncomingTrace | undefined;

/** A trace context is trusted if a trusted proxy sent it. The ids of other senders are used too, but not their flags. */
export function createIncomingTrace(trustedProxies: BlockList | undefined): ReadIncomingTrace {
  const isTrusted = (peer: string): boolean => {
    const address = peer.replace(/^::ffff:(?=[0-9.]+$)/i, '');
    const family = isIP(address);
    return family !== 0 && (trustedProxies?.check(address, family === 6 ? 'ipv6' : 'ipv4') ?? false);
  };
  return (peer, traceparent, tracestate) => {
    const context = parseTraceContext(traceparent, tracestate);
    return context && { ...context, isTrusted: isTrusted(peer) };
  };
}
