import { once } from 'node:events';
import {
  type ClientHttp2Session,
  connect,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type SecureClientSessionOptions,
} from 'node:http2';
import { buffer } from 'node:stream/consumers';

export interface Http2Response {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** A client with one HTTP/2 connection. Without TLS it has prior knowledge of the protocol. */
export interface Http2Client {
  readonly session: ClientHttp2Session;
  send(
    verb: string,
    path: string,
    options?: { readonly headers?: OutgoingHttpHeaders; readonly body?: Uint8Array | string },
  ): Promise<Http2Response>;
  close(): void;
}

export async function connectHttp2(url: string, options: SecureClientSessionOptions = {}): Promise<Http2Client> {
  const session = connect(url, options);
  await once(session, 'connect');
  session.on('error', () => {});
  return {
    session,
    async send(verb, path, { headers = {}, body } = {}) {
      const request = { ':method': verb, ':path': path, ...headers };
      const stream = session.request(request, { endStream: body === undefined });
      const failed = new Promise<never>((_, reject) => stream.on('error', reject));
      const received = (async () => {
        const [response] = (await once(stream, 'response')) as [IncomingHttpHeaders];
        return { status: Number(response[':status']), headers: response, body: await buffer(stream) };
      })();
      if (body !== undefined) stream.end(body);
      return Promise.race([received, failed]);
    },
    close: () => session.destroy(),
  };
}
