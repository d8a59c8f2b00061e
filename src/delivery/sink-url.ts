import { OutgoingError, permittedUrl } from '../identity/outgoing/permitted-url.ts';

const MAX_LENGTH = 2048;

/**
 * What a URL cannot contain: control and format characters, lone surrogates and spaces. The URL parser removes or encodes
 * them, so the sink that users see would differ from the address that events are sent to. It also reads a backslash as a
 * slash.
 */
const INVALID_CHARACTER = /[\p{Cc}\p{Cf}\p{Cs}\p{Z}\\]/u;

export interface SinkRules {
  /** Whether to allow private addresses, and http to this machine. */
  readonly allowInsecure: boolean;
  /** The URL of this server, which cannot be a sink: a delivery to it could cause another event. */
  readonly publicUrl: string;
}

/** Returns why a URL cannot be a sink, or undefined. The address of a host name is checked when it is resolved. */
export function sinkProblem(sink: string, { allowInsecure, publicUrl }: SinkRules): string | undefined {
  if (sink.length > MAX_LENGTH) return `must have at most ${MAX_LENGTH} characters`;
  if (INVALID_CHARACTER.test(sink)) {
    return 'must have no spaces, control characters or backslashes; encode them, such as %20 for a space';
  }
  try {
    const { hash, origin } = permittedUrl(sink, allowInsecure);
    if (origin === new URL(publicUrl).origin) return 'must not be the address of this server';
    return hash === '' ? undefined : 'must have no fragment, because it would not be sent';
  } catch (error) {
    if (!(error instanceof OutgoingError)) throw error;
    return `must be a URL such as https://example.com/hook, but ${error.message}`;
  }
}

/** Returns the address that limits of requests count for: the host of a sink, for all of its ports. */
export const sinkAddress = (sink: string): string => URL.parse(sink)?.hostname ?? '';
