import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { Agent as HttpAgent, request as httpRequest } from '../base/node-http.ts';
import { version } from '../base/version.ts';
import { guardedLookup } from '../identity/outgoing/guarded-lookup.ts';
import { explain, permittedUrl } from '../identity/outgoing/permitted-url.ts';

/** More of an answer is not read: nobody looks at it. */
const MAX_ANSWER = 64 * 1024;

export interface PostOptions {
  /** Whether to connect to private addresses, and without TLS to this machine. */
  readonly allowInsecure: boolean;
  /** For everything from resolving the name to the answer. */
  readonly timeoutMs: number;
}

export interface Answer {
  readonly status: number;
  /** As it was sent. */
  readonly retryAfter: string | undefined;
}

/** A connection that is kept while there is more to send. */
export interface Wire {
  /** Answers whatever the status is, redirects too, which are not followed; throws an OutgoingError without an answer. */
  post(headers: Readonly<Record<string, string>>, body: string, stop: AbortSignal): Promise<Answer>;
  close(): void;
}

/** Leads to an address that somebody else chose, and to public addresses only: checked when a name is resolved. */
export function openWire(sink: string, { allowInsecure, timeoutMs }: PostOptions): Wire {
  const isPlain = URL.parse(sink)?.protocol === 'http:';
  const lookup = guardedLookup(allowInsecure);
  const agent = new (isPlain ? HttpAgent : HttpsAgent)({ keepAlive: true, maxSockets: 1 });

  async function send(headers: Readonly<Record<string, string>>, body: string, signal: AbortSignal): Promise<Answer> {
    const request = (isPlain ? httpRequest : httpsRequest)(permittedUrl(sink, allowInsecure), {
      method: 'POST',
      signal,
      agent,
      headers: {
        'user-agent': `wharfinger/${version}`,
        'accept-encoding': 'identity',
        'content-length': Buffer.byteLength(body),
        ...headers,
      },
      lookup,
    });
    // It may fail once more after the answer began, which is of no interest then.
    request.on('error', () => {});
    request.end(body);
    try {
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      await drain(response);
      return { status: response.statusCode ?? 0, retryAfter: response.headers['retry-after'] };
    } catch (error) {
      // The sink closed a connection that it had kept, just as we wrote to it: it has not seen the request.
      if (request.reusedSocket && !signal.aborted) return send(headers, body, signal);
      throw error;
    }
  }

  return {
    async post(headers, body, stop) {
      const limit = AbortSignal.timeout(timeoutMs);
      try {
        return await send(headers, body, AbortSignal.any([limit, stop]));
      } catch (error) {
        throw explain(error, limit, timeoutMs);
      }
    },
    close: () => agent.destroy(),
  };
}

/** The status says it all; the rest is read only so that the connection can be used again. */
async function drain(response: IncomingMessage): Promise<void> {
  let size = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > MAX_ANSWER) return;
    }
  } catch {
    // Cut off or too slow: the next request gets a connection of its own.
  }
}
