import { Agent, request as httpRequest } from 'node:http';
import { type ClientHttp2Session, constants, connect as http2Connect } from 'node:http2';
import { connect } from 'node:net';
import type { FuzzRequest } from './requests.ts';

/** A request without an answer within this time counts as a hang. Longer than the timeouts of the server. */
export const DEADLINE_MS = 30_000;

/** What the server answered: an HTTP status, a gRPC status, or only the end of the connection. */
export interface FuzzAnswer {
  readonly status: number;
  readonly grpcStatus?: number;
  readonly text: string;
}

/** Sends requests to a server. An answer of `undefined` is a hang. */
export interface Sender {
  send(request: FuzzRequest): Promise<FuzzAnswer | undefined>;
  close(): void;
}

export function createSender(url: string): Sender {
  const { hostname, port } = new URL(url);
  const agent = new Agent({ keepAlive: true });
  let session: ClientHttp2Session | undefined;

  function openSession(): ClientHttp2Session {
    if (session === undefined || session.closed || session.destroyed) {
      session = http2Connect(url);
      session.on('error', () => {});
    }
    return session;
  }

  const within = (answer: Promise<FuzzAnswer>): Promise<FuzzAnswer | undefined> => {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const timer = setTimeout(resolve, DEADLINE_MS, undefined);
    return Promise.race([answer, promise]).finally(() => clearTimeout(timer));
  };

  const sendHttp = ({ verb, target, headers, body }: Extract<FuzzRequest, { kind: 'http' }>): Promise<FuzzAnswer> =>
    new Promise((resolve) => {
      const closed = (error: Error) => resolve({ status: 0, text: String(error) });
      try {
        const outgoing = httpRequest({
          ...{ hostname, port, agent, method: verb, path: target },
          headers: { ...headers, 'content-length': String(body.length) },
        });
        outgoing.on('error', closed).on('response', (response) => {
          let text = '';
          response.on('data', (chunk) => {
            if (text.length < 2000) text += chunk;
          });
          response.on('end', () => resolve({ status: response.statusCode ?? 0, text })).on('error', closed);
        });
        outgoing.end(body);
      } catch (error) {
        // The client of Node refuses to send it.
        closed(error as Error);
      }
    });

  const sendGrpc = ({ path, headers, body }: Extract<FuzzRequest, { kind: 'grpc' }>): Promise<FuzzAnswer> =>
    new Promise((resolve) => {
      let status = 0;
      let grpcStatus: number | undefined;
      let text = '';
      const take = (fields: Record<string, unknown>) => {
        status = Number(fields[':status'] ?? status);
        if (fields['grpc-status'] !== undefined) grpcStatus = Number(fields['grpc-status']);
        text = String(fields['grpc-message'] ?? text);
      };
      try {
        const stream = openSession().request({
          ...{ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' },
          ...headers,
        });
        stream
          .on('response', take)
          .on('trailers', take)
          .on('error', () => {});
        stream.on('close', () => resolve({ status, text, ...(grpcStatus !== undefined && { grpcStatus }) }));
        stream.resume().end(body);
        // A message that is shorter than it says has no end, so the client gives up.
        setTimeout(() => stream.close(constants.NGHTTP2_CANCEL), DEADLINE_MS / 2).unref();
      } catch (error) {
        resolve({ status: 0, text: String(error) });
      }
    });

  const sendRaw = ({ bytes }: Extract<FuzzRequest, { kind: 'raw' }>): Promise<FuzzAnswer> =>
    new Promise((resolve) => {
      let text = '';
      const socket = connect(Number(port), hostname);
      socket.on('data', (chunk) => {
        if (text.length < 2000) text += chunk.toString('latin1');
      });
      socket.on('error', () => {});
      socket.on('close', () => resolve({ status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0), text }));
      // The client closes its side after all bytes, so the server must close the connection soon.
      socket.end(bytes);
    });

  return {
    send(request) {
      switch (request.kind) {
        case 'http':
          return within(sendHttp(request));
        case 'grpc':
          return within(sendGrpc(request));
        case 'raw':
          return within(sendRaw(request));
      }
    },
    close() {
      agent.destroy();
      session?.destroy();
    },
  };
}
