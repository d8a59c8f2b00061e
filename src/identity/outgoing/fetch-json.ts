import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { request as httpRequest } from '../../base/node-http.ts';
import { version } from '../../base/version.ts';
import { guardedLookup } from './guarded-lookup.ts';
import { OutgoingError, permittedUrl, toOutgoingError } from './permitted-url.ts';

export interface FetchJsonOptions {
  /** Permits private addresses, and HTTP without TLS to this machine. */
  readonly allowPrivate: boolean;
  readonly maxBytes?: number;
  /** From the DNS query to the last byte. */
  readonly timeoutMs?: number;
  /** Added to the request. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface FetchedJson {
  readonly json: Readonly<Record<string, unknown>>;
  /** From the Cache-Control header. Undefined when it does not limit caching. */
  readonly maxAgeMs: number | undefined;
}

/**
 * Fetches a JSON object from a URL that a user configured. Throws an OutgoingError.
 *
 * Redirects are not followed: each hop would need all checks again, and issuers must send discovery documents and keys
 * with status 200 (OpenID Connect Discovery 1.0, section 4.2).
 */
export async function fetchJson(address: string, options: FetchJsonOptions): Promise<FetchedJson> {
  const { allowPrivate, maxBytes = 512 * 1024, timeoutMs = 5000, headers = {} } = options;
  const url = permittedUrl(address, allowPrivate);
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const response = await get(url, allowPrivate, signal, headers);
    try {
      const text = await readBody(response, maxBytes);
      return { json: parseObject(text), maxAgeMs: maxAge(response.headers['cache-control']) };
    } finally {
      response.destroy();
    }
  } catch (error) {
    throw toOutgoingError(error, signal, timeoutMs);
  }
}

async function get(
  url: URL,
  allowPrivate: boolean,
  signal: AbortSignal,
  added: Readonly<Record<string, string>>,
): Promise<IncomingMessage> {
  const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, {
    signal,
    // A new connection that is closed afterwards. The global agent may use a proxy from environment variables.
    agent: false,
    // A compressed response of 500 kB could expand to 500 MB.
    headers: {
      accept: 'application/json',
      'accept-encoding': 'identity',
      'user-agent': `wharfinger/${version}`,
      ...added,
    },
    lookup: guardedLookup(allowPrivate),
    // Also with NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment: the keys decide whose tokens are valid.
    rejectUnauthorized: true,
  });
  // The request can emit an error after the response has begun. Reading the response then fails too and reports it.
  request.on('error', () => {});
  request.end();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return response;
}

async function readBody(response: IncomingMessage, maxBytes: number): Promise<string> {
  const { statusCode = 0, headers } = response;
  if (statusCode >= 300 && statusCode < 400)
    throw new OutgoingError('it answered with a redirect, which is not followed');
  if (statusCode !== 200) throw new OutgoingError(`it answered with status ${statusCode}`);
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity')
    throw new OutgoingError('it answered with a compressed response, which was not requested');
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) throw new OutgoingError(`it answered with more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parseObject(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The message of JSON.parse is not used, because it quotes the response.
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new OutgoingError('it did not answer with a JSON object');
}

function maxAge(header = ''): number | undefined {
  if (/\bno-(?:store|cache)\b/i.test(header)) return 0;
  const seconds = /\bmax-age=([0-9]{1,9})\b/i.exec(header)?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}
