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

/** A request that a sink got. */
export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The `ce-` headers, without their prefix. */
  readonly attributes: Readonly<Record<string, string>>;
}

/** Receives webhooks, and answers 204 unless told otherwise. */
export interface TestSink {
  readonly url: string;
  /** All there were, in their order. */
  readonly received: Received[];
  /** Answers in its own way, while it is set; false leaves the answer to the sink. */
  answer: ((request: Received, response: ServerResponse) => boolean) | undefined;
  close(): Promise<void>;
}

/** Over TLS, with a certificate of test/data/tls by its name. */
export async function startSink(certificate?: string): Promise<TestSink> {
  const receive: RequestListener = async (req, res) => {
    const headers = req.headers;
    const body = await req.toArray().then(
      (chunks) => Buffer.concat(chunks).toString(),
      () => undefined,
    );
    if (body === undefined) return;
    const ce = Object.entries(headers).filter(([name]) => name.startsWith('ce-'));
    const attributes = Object.fromEntries(ce.map(([name, value]) => [name.slice(3), String(value)]));
    const request = { path: req.url ?? '', headers, body, attributes };
    sink.received.push(request);
    if (!sink.answer?.(request, res)) res.writeHead(204).end();
  };
  const server = certificate === undefined ? createServer(receive) : createTlsServer(tlsPair(certificate), receive);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const sink: TestSink = {
    url: `${certificate === undefined ? 'http' : 'https'}://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received: [],
    answer: undefined,
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

/** The data of an event. */
export interface EventData {
  readonly actor?: { readonly subject: string; readonly act?: Readonly<Record<string, string>> };
  readonly body?: Readonly<Record<string, unknown>>;
}

export interface Expected {
  /** The server that sends, which is the issuer of its tokens. */
  readonly issuer: string;
  readonly subscription: string;
  readonly secret: string;
}

/** Verifies a delivery with the libraries that receivers use, and answers the event as they read it. */
export function createVerify({ issuer, subscription, secret }: Expected) {
  const keys = createRemoteJWKSet(new URL('/.well-known/jwks.json', issuer));
  const webhook = new Webhook(secret);
  return async ({ headers, body, attributes }: Received) => {
    const flat = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
    webhook.verify(body, flat);
    assert.equal(headers['webhook-id'], attributes.id);

    const token = String(headers.authorization).replace(/^Bearer /, '');
    const { payload } = await jwtVerify(token, keys, {
      issuer,
      audience: 'customer',
      subject: `webhook:${parentOf(subscription)}`,
    });
    const digest = `sha256:${createHash('sha256').update(body).digest('hex')}`;
    assert.deepEqual(payload.webhook, { digest });

    const event = HTTP.toEvent({ headers: flat, body }) as CloudEvent<EventData>;
    assert.ok(event.validate());
    assert.equal(event.source, issuer);
    assert.equal(event.chainguarddev1subscription, subscription);
    return event;
  };
}
