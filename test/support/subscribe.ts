import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { credentials, Client as GrpcClient, Metadata } from '@grpc/grpc-js';
import {
  CreateSubscriptionRequestSchema,
  SubscriptionSchema,
  SubscriptionsService,
} from '../../src/contract/gen/chainguard/platform/events/v2/subscriptions_pb.js';
import { SECRET_HEADER } from '../../src/domains/events/subscriptions.ts';
import type { TestServer } from './server.ts';
import type { Wire } from './wires.ts';

export interface NewSubscription {
  readonly uid: string;
  /** The webhook secret from the response header. */
  readonly secret: string;
}

/** Creates a subscription of a group, as the owner. `sink` is a URL. */
export const subscribe = (
  wire: Wire['name'],
  server: Pick<TestServer, 'url' | 'token'>,
  parent: string,
  sink: string,
): Promise<NewSubscription> => (wire === 'REST' ? overRest : overGrpc)(server, parent, sink);

type Subscribe = (server: Pick<TestServer, 'url' | 'token'>, parent: string, sink: string) => Promise<NewSubscription>;

const overRest: Subscribe = async ({ url, token }, parent, sink) => {
  const response = await fetch(`${url}/events/v2/subscriptions/${parent}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ sink }),
  });
  if (!response.ok) throw new Error(await response.text());
  const { uid } = (await response.json()) as { uid: string };
  return { uid, secret: response.headers.get(SECRET_HEADER) ?? '' };
};

const overGrpc: Subscribe = ({ url, token }, parent, sink) => {
  const client = new GrpcClient(new URL(url).host, credentials.createInsecure());
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${token}`);
  const { typeName, method } = SubscriptionsService;
  const request = create(CreateSubscriptionRequestSchema, { parent, subscription: { sink } });
  return new Promise<NewSubscription>((resolve, reject) => {
    let secret = '';
    client
      .makeUnaryRequest(
        `/${typeName}/${method.createSubscription.name}`,
        (bytes: Uint8Array) => Buffer.from(bytes),
        (bytes: Buffer) => fromBinary(SubscriptionSchema, bytes),
        toBinary(CreateSubscriptionRequestSchema, request),
        metadata,
        (error, subscription) => (error ? reject(error) : resolve({ uid: subscription?.uid ?? '', secret })),
      )
      .on('metadata', (headers) => {
        secret = String(headers.get(SECRET_HEADER)[0] ?? '');
      });
  }).finally(() => client.close());
};
