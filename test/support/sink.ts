import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type CloudEvent, HTTP } from 'cloudevents';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { Webhook } from 'standardwebhooks';
import { parentOf } from '../../src/base/uid.ts';

/** A request that a sink received. */
export interface SinkRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The `ce-` headers, without their prefix. */
  readonly attributes: Readonly<Record<string, string>>;
}

/** An HTTP server that receives webhooks. It responds with 204 unless `handler` responds. */
export interface TestSink {
  readonly url: string;
  /** All received requests, oldest first. */
  readonly received: SinkRequest[];
  /** Handles requests while it is set. If it returns false, the sink responds. */
  handler: ((request: SinkRequest, response: ServerResponse) => boolean) | undefined;
  close(): Promise<void>;
}

/** Starts a sink. With the name of a certificate in test/data/tls, it serves HTTPS. */
export async function startSink(certificate?: string): Promise<TestSink> {
  const receive: RequestListener = async (req, res) => {
    const headers = req.headers;
    const body = await req.toArray().then(
      (chunks) => Buffer.concat(chunks).toString(),
      () => undefined,
    );
    if (body === undefined) return;
    const ceHeaders = Object.entries(headers).filter(([name]) => name.startsWith('ce-'));
    const attributes = Object.fromEntries(ceHeaders.map(([name, value]) => [name.slice(3), String(value)]));
    const request = { method: req.method ?? '', path: req.url ?? '', headers, body, attributes };
    sink.received.push(request);
    if (!sink.handler?.(request, res)) res.writeHead(204).end();
  };
  const server = certificate === undefined ? createServer(receive) : createTlsServer(tlsPair(certificate), receive);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const sink: TestSink = {
    url: `${certificate === undefined ? 'http' : 'https'}://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received: [],
    handler: undefined,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
  return sink;
}

const tlsData = (name: string): string => readFileSync(new URL(`../data/tls/${name}.pem`, import.meta.url), 'utf8');

const tlsPair = (certificate: string) => ({ cert: tlsData(certificate), key: tlsData('key') });

/** The data of a CloudEvent that the server sends. */
export interface EventData {
  readonly actor?: { readonly subject: string; readonly act?: Readonly<Record<string, string>> };
  readonly body?: Readonly<Record<string, unknown>>;
}

export interface ExpectedSender {
  /** The URL of the server that sends, which is also the issuer of its tokens. */
  readonly issuer: string;
  readonly subscription: string;
  readonly secret: string;
}

/**
 * Creates a function that verifies a delivery with the libraries that receivers use: the signature, the token and the
 * event. It returns the event.
 */
export function createDeliveryVerifier({ issuer, subscription, secret }: ExpectedSender) {
  const keys = createRemoteJWKSet(new URL('/.well-known/jwks.json', issuer));
  const webhook = new Webhook(secret);
  return async ({ headers, body, attributes }: SinkRequest) => {
    const headerValues = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
    webhook.verify(body, headerValues);
    assert.equal(headers['webhook-id'], attributes.id);

    const token = String(headers.authorization).replace(/^Bearer /, '');
    const { payload } = await jwtVerify(token, keys, {
      issuer,
      audience: 'customer',
      subject: `webhook:${parentOf(subscription)}`,
    });
    const digest = `sha256:${createHash('sha256').update(body).digest('hex')}`;
    assert.deepEqual(payload.webhook, { digest });

    const event = HTTP.toEvent({ headers: headerValues, body }) as CloudEvent<EventData>;
    assert.ok(event.validate());
    assert.ok(
      [issuer, new URL(issuer).hostname].some((source) => event.source.startsWith(source)),
      event.source,
    );
    assert.match(headerValues.traceparent ?? '', /^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/);
    assert.equal(event.chainguarddev1subscription, subscription);
    return event;
  };
}
