// A client without a valid token tries many, or asks often. It is slowed down; others at the same address are not.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { credentials, Client as GrpcClient, Metadata, type ServiceError } from '@grpc/grpc-js';
import { Code } from '../../../src/base/errors.ts';
import { databases } from '../../support/databases.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

/** The part of a response that matters here, in the same form for all wires. */
interface Result {
  readonly code: number;
  readonly retryAfter: string | undefined;
  readonly text: string;
}

interface Request {
  readonly token?: string;
  /** What X-Forwarded-For says. The server trusts this machine as a proxy. */
  readonly from: string;
}

const codes: Readonly<Record<number, number>> = {
  200: Code.OK,
  401: Code.UNAUTHENTICATED,
  429: Code.RESOURCE_EXHAUSTED,
};

const http =
  (path: string) =>
  async (url: string, { token, from }: Request): Promise<Result> => {
    const response = await fetch(`${url}${path}`, {
      headers: { 'x-forwarded-for': from, ...(token && { authorization: `Bearer ${token}` }) },
    });
    const code = codes[response.status] ?? response.status;
    return { code, retryAfter: response.headers.get('retry-after') ?? undefined, text: await response.text() };
  };

function grpc(url: string, { token, from }: Request): Promise<Result> {
  const client = new GrpcClient(new URL(url).host, credentials.createInsecure());
  const metadata = new Metadata();
  metadata.set('x-forwarded-for', from);
  if (token) metadata.set('authorization', `Bearer ${token}`);
  return new Promise((resolve) => {
    client.makeUnaryRequest(
      '/chainguard.platform.iam.v2.GroupsService/ListGroups',
      () => Buffer.alloc(0),
      (bytes: Buffer) => bytes,
      undefined,
      metadata,
      (error: ServiceError | null) => {
        client.close();
        if (!error) return resolve({ code: Code.OK, retryAfter: undefined, text: '' });
        const retryAfter = error.metadata.get('retry-after')[0]?.toString();
        resolve({ code: error.code, retryAfter, text: String(error.metadata.get('grpc-status-details-bin')[0]) });
      },
    );
  });
}

const wires = { REST: http('/iam/v2/groups'), gRPC: grpc, OCI: http('/v2/') };

/** Ten seconds' worth may come at once: 100 requests without a token, or 10 with a wrong one. */
const env = { WHARF_ADDRESS_RATE: '10', WHARF_TRUSTED_PROXIES: '127.0.0.1,10.0.0.0/8' };

for (const database of databases) {
  describe(`many requests without a valid token on ${database.name}`, () => {
    let server: TestServer;
    let now = Date.now();
    before(async () => {
      server = await startTestServer(database, { env, clock: () => now });
    });
    after(() => server.remove());

    for (const [wire, send] of Object.entries(wires)) {
      const net = { REST: 1, gRPC: 2, OCI: 3 }[wire];

      test(`guessing tokens over ${wire} is slowed down`, async () => {
        const from = `192.0.2.${net}`;
        const results: Result[] = [];
        for (let i = 0; i < 12; i++) results.push(await send(server.url, { token: `guess-${i}`, from }));
        assert.deepEqual(
          results.map(({ code }) => code),
          [...Array(10).fill(Code.UNAUTHENTICATED), Code.RESOURCE_EXHAUSTED, Code.RESOURCE_EXHAUSTED],
        );
        const refused = results.at(-1);
        assert.equal(refused?.retryAfter, '1');
        assert.match(refused?.text ?? '', new RegExp(`address:${from}`));
        if (wire !== 'OCI') assert.match(refused?.text ?? '', /google\.rpc\.QuotaFailure.*google\.rpc\.RetryInfo/s);
        else assert.match(refused?.text ?? '', /TOOMANYREQUESTS/);

        // A request without a token costs less, but the budget is empty. Other addresses have their own.
        assert.equal((await send(server.url, { from })).code, Code.RESOURCE_EXHAUSTED);
        assert.equal((await send(server.url, { from: `198.51.100.${net}` })).code, Code.UNAUTHENTICATED);
        now += 1_000;
        assert.equal((await send(server.url, { token: 'guess', from })).code, Code.UNAUTHENTICATED);
      });

      test(`a client with a valid token keeps working beside an attacker over ${wire}`, async () => {
        const from = `192.0.3.${net}`;
        const honest = { token: server.token, from };
        assert.equal((await send(server.url, honest)).code, Code.OK);
        for (let i = 0; i < 11; i++) await send(server.url, { token: `guess-${i}`, from });
        assert.equal((await send(server.url, { from })).code, Code.RESOURCE_EXHAUSTED);
        for (let i = 0; i < 30; i++) assert.equal((await send(server.url, honest)).code, Code.OK);
      });

      test(`a client cannot choose its address over ${wire}`, async () => {
        const forged = (i: number) => `203.0.113.${i}, 192.0.4.${net}, 10.0.0.7`;
        let last: Result | undefined;
        for (let i = 0; i < 11; i++) last = await send(server.url, { token: 'guess', from: forged(i) });
        assert.equal(last?.code, Code.RESOURCE_EXHAUSTED);
      });
    }

    test('public methods count, and a failed exchange costs as much as a guess', async () => {
      const exchange = (from: string) =>
        fetch(`${server.url}/sts/exchange`, {
          method: 'POST',
          headers: {
            'content-type': 'application/x-www-form-urlencoded',
            authorization: 'Bearer guess',
            'x-forwarded-for': from,
          },
          body: 'aud=x',
        }).then(({ status }) => status);
      const statuses: number[] = [];
      for (let i = 0; i < 12; i++) statuses.push(await exchange('192.0.5.1'));
      assert.ok(statuses.includes(401));
      assert.equal(statuses.at(-1), 429);
      const ping = http('/ping/v2/ping');
      const pings: number[] = [];
      for (let i = 0; i < 101; i++) pings.push((await ping(server.url, { from: '192.0.5.2' })).code);
      assert.deepEqual([pings.indexOf(Code.RESOURCE_EXHAUSTED), pings.length], [100, 101]);
    });

    test('the metrics count refusals', async () => {
      const text = await (await fetch(`${server.url}/metrics`)).text();
      assert.match(text, /wharf_quota_refusals_total\{quota="address_rate"\} \d+/);
    });
  });
}
