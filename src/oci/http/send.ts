import type { ServerResponse } from 'node:http';
import type { BlobReader } from '../../blobs/blobs.ts';
import type { Answer } from './call.ts';

/** Resolves when the last byte is on its way; rejects when the client is gone, or takes nothing for `stallMs`. */
export async function send(res: ServerResponse, answer: Answer, stallMs: number): Promise<void> {
  const { status, headers = {}, body = '', reader } = answer;
  // RFC 9110, section 8.6: no length with 204; with 304 it would be that of the answer in full.
  const length = reader || status === 204 || status === 304 ? {} : { 'content-length': Buffer.byteLength(body) };
  res.writeHead(status, { ...length, ...headers });
  if (!reader) return end(res, body);
  try {
    await copy(reader, res, stallMs);
  } catch (error) {
    // The client was promised more than there is: only a broken connection tells it so.
    res.destroy();
    throw error;
  }
  // All of it is out, and a client that counts may be gone already.
  res.end();
}

function copy(reader: BlobReader, res: ServerResponse, stallMs: number): Promise<void> {
  let isGone = res.destroyed;
  let giveUp = (_error: Error): void => {};
  // Node does not call back for a write that meets a socket which just closed.
  res.once('close', () => {
    isGone = true;
    giveUp(clientGone);
  });
  res.setTimeout(stallMs, () => res.destroy());
  return reader.copyTo(
    (piece) =>
      new Promise((resolve, reject) => {
        if (isGone) return reject(clientGone);
        giveUp = reject;
        res.write(piece, (error) => (error ? reject(error) : resolve()));
      }),
  );
}

const end = (res: ServerResponse, body: Uint8Array | string): Promise<void> =>
  new Promise((resolve, reject) => {
    if (res.destroyed) return reject(clientGone);
    res.once('close', () => (res.writableFinished ? resolve() : reject(clientGone)));
    res.once('finish', resolve);
    // Node leaves out the body of an answer to HEAD by itself.
    res.end(body);
  });

const clientGone = new Error('the client went away');
