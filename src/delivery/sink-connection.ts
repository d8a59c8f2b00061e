import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { Agent as HttpAgent, request as httpRequest } from '../base/node-http.ts';
import { version } from '../base/version.ts';
import { guardedLookup } from '../identity/outgoing/guarded-lookup.ts';
import { permittedUrl, toOutgoingError } from '../identity/outgoing/permitted-url.ts';

/** The most bytes of a response body that are read. They are ignored. */
const MAX_RESPONSE = 64 * 1024;

export interface PostOptions {
  /** Whether to allow private addresses, and http to this machine. */
  readonly allowInsecure: boolean;
  /** For one request, from resolving the host name to the end of the response. */
  readonly timeoutMs: number;
}

export interface SinkResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
}

export type SinkMethod = 'POST' | 'OPTIONS';

/** Sends requests to a sink one after the other, over one connection if the sink keeps it open. */
export interface SinkConnection {
  /** Returns any response, also a redirect, which is not followed. Throws an OutgoingError if there is no response. */
  send(
    method: SinkMethod,
    headers: Readonly<Record<string, string>>,
    body: string,
    stop: AbortSignal,
  ): Promise<SinkResponse>;
  close(): void;
}

/** The URL of a sink is chosen by a user. So it must have a public address, which is checked when it is resolved. */
export function openSinkConnection(sink: string, { allowInsecure, timeoutMs }: PostOptions): SinkConnection {
  const isPlain = URL.parse(sink)?.protocol === 'http:';
  const lookup = guardedLookup(allowInsecure);
  const agent = new (isPlain ? HttpAgent : HttpsAgent)({ keepAlive: true, maxSockets: 1 });

  async function request(
    method: SinkMethod,
    headers: Readonly<Record<string, string>>,
    body: string,
    signal: AbortSignal,
  ): Promise<SinkResponse> {
    const sent = (isPlain ? httpRequest : httpsRequest)(permittedUrl(sink, allowInsecure), {
      method,
      signal,
      agent,
      headers: {
        'user-agent': `wharfinger/${version}`,
        'accept-encoding': 'identity',
        'content-length': Buffer.byteLength(body),
        ...headers,
      },
      lookup,
      // Also with NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment.
      rejectUnauthorized: true,
    });
    // The request may also emit an error after the response has begun. That error is ignored.
    sent.on('error', () => {});
    sent.end(body);
    try {
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      await drain(response);
      return { status: response.statusCode ?? 0, headers: response.headers };
    } catch (error) {
      // The sink closed the idle connection when the request was sent, so it has not received the request.
      if (sent.reusedSocket && !signal.aborted) return request(method, headers, body, signal);
      throw error;
    }
  }

  return {
    async send(method, headers, body, stop) {
      const timeout = AbortSignal.timeout(timeoutMs);
      try {
        return await request(method, headers, body, AbortSignal.any([timeout, stop]));
      } catch (error) {
        throw toOutgoingError(error, timeout, timeoutMs);
      }
    },
    close: () => agent.destroy(),
  };
}

/** Reads the body, so that the connection can be reused. */
async function drain(response: IncomingMessage): Promise<void> {
  let size = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > MAX_RESPONSE) return;
    }
  } catch {
    // The body was incomplete or too slow. The next request opens a new connection.
  }
}
