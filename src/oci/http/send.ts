import type { ServerResponse } from 'node:http';
import type { BlobReader } from '../../blobs/blobs.ts';
import type { OciResponse } from './call.ts';

/** Resolves when the last byte is sent. Rejects when the client disconnects, or reads nothing for `stallMs`. */
export async function send(res: ServerResponse, response: OciResponse, stallMs: number): Promise<void> {
  const { status, headers = {}, body = '', reader } = response;
  // RFC 9110, section 8.6: no Content-Length with 204; with 304 it would be that of the full response.
  const length = reader || status === 204 || status === 304 ? {} : { 'content-length': Buffer.byteLength(body) };
  res.writeHead(status, { ...length, ...headers });
  if (!reader) return end(res, body);
  try {
    await copy(reader, res, stallMs);
  } catch (error) {
    // The headers are sent, so only a broken connection tells the client that the body is incomplete.
    res.destroy();
    throw error;
  }
  // Everything is sent; a client that counts bytes may have disconnected already.
  res.end();
}

function copy(reader: BlobReader, res: ServerResponse, stallMs: number): Promise<void> {
  let isDisconnected = res.destroyed;
  let giveUp = (_error: Error): void => {};
  // Node does not call back for a write to a socket that has just closed.
  res.once('close', () => {
    isDisconnected = true;
    giveUp(clientDisconnected);
  });
  res.setTimeout(stallMs, () => res.destroy());
  return reader.copyTo(
    (piece) =>
      new Promise((resolve, reject) => {
        if (isDisconnected) return reject(clientDisconnected);
        giveUp = reject;
        res.write(piece, (error) => (error ? reject(error) : resolve()));
      }),
  );
}

const end = (res: ServerResponse, body: Uint8Array | string): Promise<void> =>
  new Promise((resolve, reject) => {
    if (res.destroyed) return reject(clientDisconnected);
    res.once('close', () => (res.writableFinished ? resolve() : reject(clientDisconnected)));
    res.once('finish', resolve);
    // For HEAD, Node omits the body by itself.
    res.end(body);
  });

const clientDisconnected = new Error('the client disconnected');
