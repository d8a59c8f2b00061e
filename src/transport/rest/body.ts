import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { bodyLengthOf } from '../../base/body-length.ts';
import { createByteCollector } from '../../base/byte-collector.ts';
import { invalid } from '../../base/errors.ts';
import type { MemoryBudget } from '../../base/memory-budget.ts';
import { decodeUtf8 } from '../../contract/json/parse.ts';
import type { Route } from '../../contract/method.ts';
import { clientDisconnected } from '../cancellation.ts';
import { bodyTooLarge, tooManyBodies } from './http-error.ts';
import type { Body } from './read-request.ts';
import { takesForm } from './read-request.ts';

export const hasBody = (req: IncomingMessage): boolean => bodyLengthOf(req) !== 0;

export interface BodyLimits {
  /** The limit before and after decompression. */
  readonly maxBytes: number;
  /** For a body whose sender is not authenticated. */
  readonly budget?: MemoryBudget | undefined;
}

/** Reads a body. Invalid headers are refused before it is read. */
export async function readBody(req: IncomingMessage, route: Route, { maxBytes, budget }: BodyLimits): Promise<Body> {
  const type = bodyType(req.headers['content-type'], route);
  const decompress = decompressor(req.headers['content-encoding'], maxBytes);
  const bytes = await readBytes(req, maxBytes, budget);
  return { type, text: decodeUtf8(decompress === undefined ? bytes : await decompress(bytes)) };
}

/**
 * A body is JSON whatever its header says: the published guides use `curl -d '{...}'`, which sends the type of a form.
 * Only where a form is accepted, the header decides. A web page of another origin can send such a body too, but not the
 * header `authorization`, and no cookie authenticates a caller.
 */
function bodyType(header = '', route: Route): Body['type'] {
  const [type = ''] = header.split(';', 1);
  return type.trim().toLowerCase() === 'application/x-www-form-urlencoded' && takesForm(route) ? 'form' : 'json';
}

type Decompress = (bytes: Buffer) => Promise<Buffer>;

function decompressor(encoding = 'identity', maxBytes: number): Decompress | undefined {
  switch (encoding.toLowerCase()) {
    case 'identity':
      return undefined;
    case 'gzip':
      return (bytes) => unzip(bytes, maxBytes);
    default:
      throw invalid('content-encoding', 'must be gzip or none');
  }
}

async function unzip(bytes: Buffer, maxBytes: number): Promise<Buffer> {
  try {
    return await promisify(gunzip)(bytes, { maxOutputLength: maxBytes });
  } catch (error) {
    if (error instanceof RangeError) throw bodyTooLarge(maxBytes);
    throw invalid('body', 'must be valid gzip, because its content-encoding is gzip');
  }
}

function readBytes(req: IncomingMessage, maxBytes: number, budget: MemoryBudget | undefined): Promise<Buffer> {
  const length = Number(req.headers['content-length'] ?? Number.NaN);
  if (length > maxBytes) throw bodyTooLarge(maxBytes);
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const collector = createByteCollector();
  let charged = 0;
  const release = (): void => {
    budget?.release(charged);
    charged = 0;
  };
  /** The rest is discarded as it arrives: closing now would reset the connection before the client reads the error. */
  const refuse = (error: Error): void => {
    req.off('data', collect).resume();
    release();
    reject(error);
  };
  const collect = (chunk: Buffer): void => {
    if (collector.size + chunk.length > maxBytes) {
      refuse(bodyTooLarge(maxBytes));
      return;
    }
    collector.add(chunk);
    if (budget === undefined || collector.size === length) return;
    charged += chunk.length;
    budget.charge(chunk.length);
    if (budget.isExceeded) refuse(tooManyBodies());
  };
  req.on('data', collect);
  req.once('end', () => {
    release();
    resolve(collector.bytes());
  });
  req.once('error', () => {
    release();
    reject(clientDisconnected);
  });
  return promise;
}
