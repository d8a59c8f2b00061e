import { randomBytes } from 'node:crypto';

/*
 * The headers `traceparent` and `tracestate` of the W3C recommendation Trace Context (level 1), by which requests of
 * several servers become one trace.
 */

/** The place of a span in a trace, as it is sent to other servers. */
export interface TraceContext {
  /** 32 hex digits. */
  readonly traceId: string;
  /** 16 hex digits. */
  readonly spanId: string;
  /** Whether the sender records its spans of this trace. */
  readonly isSampled: boolean;
  /** What other vendors add, in their own format. It is passed on unchanged. */
  readonly tracestate?: string | undefined;
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const NO_TRACE = '0'.repeat(32);
const NO_SPAN = '0'.repeat(16);
const SAMPLED = 1;

/**
 * Reads the two headers. Returns undefined for a `traceparent` that is not valid, which then counts as absent (section
 * 4.3), and ignores a `tracestate` that is not valid. A later version may have more fields, which are ignored (section
 * 3.2.4).
 */
export function parseTraceContext(traceparent: string | undefined, tracestate?: string): TraceContext | undefined {
  const match = traceparent === undefined ? null : TRACEPARENT.exec(traceparent.trim());
  if (!match) return undefined;
  const [, version, traceId = '', spanId = '', flags = '', more] = match;
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  if (traceId === NO_TRACE || spanId === NO_SPAN) return undefined;
  const isSampled = (Number.parseInt(flags, 16) & SAMPLED) !== 0;
  return { traceId, spanId, isSampled, tracestate: validTracestate(tracestate) };
}

export const formatTraceparent = ({ traceId, spanId, isSampled }: TraceContext): string =>
  `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`;

/** The headers that carry a context. */
export const traceHeaders = (context: TraceContext): Record<string, string> => ({
  traceparent: formatTraceparent(context),
  ...(context.tracestate !== undefined && { tracestate: context.tracestate }),
});

/** The headers of a new trace, which this server does not record. */
export const newTraceHeaders = (): Record<string, string> =>
  traceHeaders({
    traceId: randomBytes(16).toString('hex'),
    spanId: randomBytes(8).toString('hex'),
    isSampled: false,
  });

const MAX_TRACESTATE = 512;
const MAX_MEMBERS = 32;
const KEY = /^(?:[a-z][\w*/-]{0,255}|[a-z0-9][\w*/-]{0,240}@[a-z][\w*/-]{0,13})$/;
const UPPER_CASE = /[A-Z]/;
// Visible ASCII and spaces, without comma and equals sign, not ending with a space.
const VALUE = /^[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/** Returns a `tracestate` without empty members, or undefined if it is not valid (section 3.3.1). */
function validTracestate(text: string | undefined): string | undefined {
  if (text === undefined || text.length > MAX_TRACESTATE) return undefined;
  const members = text
    .split(',')
    .map((member) => member.replace(/^[ \t]+|[ \t]+$/g, ''))
    .filter((member) => member !== '');
  if (members.length === 0 || members.length > MAX_MEMBERS) return undefined;
  const keys = new Set<string>();
  for (const member of members) {
    const cut = member.indexOf('=');
    const key = member.slice(0, cut);
    if (cut < 0 || !KEY.test(key) || UPPER_CASE.test(key) || keys.has(key) || !VALUE.test(member.slice(cut + 1))) {
      return undefined;
    }
    keys.add(key);
  }
  return members.join(',');
}
