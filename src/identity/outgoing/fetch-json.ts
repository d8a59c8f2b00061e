import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { request as httpRequest } from '../../base/node-http.ts';
import { version } from '../../base/version.ts';
import { guardedLookup } from './guarded-lookup.ts';
import { explain, OutgoingError, permittedUrl } from './permitted-url.ts';

export interface FetchOptions {
  /** Whether to connect to private addresses, and without TLS to this machine. */
  readonly allowPrivate: boolean;
  readonly maxBytes?: number;
  /** For everything from resolving the name to the last byte. */
  readonly timeoutMs?: number;
}

export interface Fetched {
  readonly json: Readonly<Record<string, unknown>>;
  /** How long the answer may be kept, where it says so. */
  readonly maxAgeMs: number | undefined;
}

/**
 * Reads a JSON object from an address that somebody else chose. Throws an OutgoingError.
 *
 * Redirects are not followed at all: each hop would need all checks again, and no issuer needs one, because discovery
 * documents and keys are answered with 200 (OpenID Connect Discovery 1.0, section 4.2).
 */
export async function fetchJson(address: string, options: FetchOptions): Promise<Fetched> {
  const { allowPrivate, maxBytes = 512 * 1024, timeoutMs = 5000 } = options;
  const url = permittedUrl(address, allowPrivate);
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const response = await get(url, allowPrivate, signal);
    try {
      const text = await readBody(response, maxBytes);
      return { json: parseObject(text), maxAgeMs: maxAge(response.headers['cache-control']) };
    } finally {
      response.destroy();
    }
  } catch (error) {
    throw explain(error, signal, timeoutMs);
  }
}

async function get(url: URL, allowPrivate: boolean, signal: AbortSignal): Promise<IncomingMessage> {
  const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, {
    signal,
    // A connection of its own, closed afterwards; the global agent may be told by the environment to use a proxy.
    agent: false,
    // Compressed, 500 kB could become 500 MB.
    headers: { accept: 'application/json', 'accept-encoding': 'identity', 'user-agent': `wharfinger/${version}` },
    lookup: guardedLookup(allowPrivate),
  });
  // It may fail once more after the answer began; reading the answer then fails too, and says so.
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
  if (encoding !== 'identity') throw new OutgoingError('it answered in a compressed form, which was not asked for');
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
    // What JSON.parse says quotes the answer.
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new OutgoingError('it did not answer with a JSON object');
}

function maxAge(header = ''): number | undefined {
  if (/\bno-(?:store|cache)\b/i.test(header)) return 0;
  const seconds = /\bmax-age=([0-9]{1,9})\b/i.exec(header)?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}
