import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { create, toBinary } from '@bufbuild/protobuf';
import { credentials, Client as GrpcClient, Metadata, type ServiceError } from '@grpc/grpc-js';
import { createLogger } from '../../src/base/log.ts';
import { CreateGroupRequestSchema } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService } from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { databases } from '../support/databases.ts';
import { newKey, sign, startIssuer } from '../support/issuer.ts';
import { ociClient, pushImage } from '../support/oci-client.ts';
import { pollUntil } from '../support/poll-until.ts';
import { spawnServer } from '../support/process.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { startSink, type TestSink } from '../support/sink.ts';
import { subscribe } from '../support/subscribe.ts';
import { wires } from '../support/wires.ts';
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from './otlp-receiver.ts';

const CREATE_GROUP = 'chainguard.platform.iam.v2.GroupsService/CreateGroup';
const newTrace = () => ({ traceId: randomBytes(16).toString('hex'), spanId: randomBytes(8).toString('hex') });

let groups = 0;
const newName = () => `traced-${++groups}`;

interface Headers {
  readonly traceparent?: string;
  readonly tracestate?: string;
}

/** Creates a group. Returns the error details of a refusal. */
type CreateGroup = (server: TestServer, name: string, headers?: Headers) => Promise<string | undefined>;

const overRest: CreateGroup = async ({ url, token, organization }, name, headers = {}) => {
  const response = await fetch(`${url}/iam/v2/groups/${organization}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ name }),
  });
  return response.ok ? undefined : response.text();
};

const overGrpc: CreateGroup = async ({ url, token, organization }, name, headers = {}) => {
  const client = new GrpcClient(new URL(url).host, credentials.createInsecure());
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${token}`);
  for (const [key, value] of Object.entries(headers)) metadata.set(key, value);
  const request = create(CreateGroupRequestSchema, { parent: organization, group: { name } });
  try {
    return await new Promise((resolve) => {
      const bytes = Buffer.from(toBinary(CreateGroupRequestSchema, request));
      const same = (value: Buffer): Buffer => value;
      client.makeUnaryRequest(`/${CREATE_GROUP}`, same, same, bytes, metadata, (error: ServiceError | null) =>
        resolve(error ? String(error.metadata.get('grpc-status-details-bin')[0]) : undefined),
      );
    });
  } finally {
    client.close();
  }
};

for (const database of databases) {
  describe(`traces on ${database.name}`, () => {
    let receiver: OtlpReceiver;
    let server: TestServer;
    let sink: TestSink;
    const lines: Record<string, unknown>[] = [];

    before(async () => {
      receiver = await startOtlpReceiver();
      sink = await startSink();
      server = await startTestServer(database, {
        env: {
          OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
          OTEL_BSP_SCHEDULE_DELAY: '20',
          OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
          WHARF_TRUSTED_PROXIES: '127.0.0.1',
          WHARF_ALLOW_INSECURE_SINKS: 'true',
          WHARF_ALLOW_PRIVATE_ISSUERS: 'true',
        },
        log: createLogger({ level: 'info', destination: { write: (line) => lines.push(JSON.parse(line)) } }),
      });
    });
    after(async () => {
      await server.remove();
      await sink.close();
      await receiver.close();
    });

    const spansOf = (traceId: string) => receiver.spans.filter((span) => span.traceId === traceId);
    /** The spans of a trace, when the span of the call has arrived: it ends last. */
    const trace = (traceId: string): Promise<ReceivedSpan[]> =>
      pollUntil(
        async () => spansOf(traceId),
        (spans) => spans.some(({ kind }) => kind === 2),
      );
    const named = (spans: readonly ReceivedSpan[], name: string): ReceivedSpan =>
      spans.find((span) => span.name === name) ?? assert.fail(`no span ${name}: ${JSON.stringify(spans)}`);

    for (const [wire, createGroup] of [['rest', overRest] as const, ['grpc', overGrpc] as const]) {
      test(`a create over ${wire} is a trace of its steps, as part of the trace of the client`, async () => {
        const { traceId, spanId } = newTrace();
        const headers = { traceparent: `00-${traceId}-${spanId}-01`, tracestate: 'vendor=value' };
        assert.equal(await createGroup(server, newName(), headers), undefined);
        const spans = await trace(traceId);
        const call = named(spans, CREATE_GROUP);
        assert.equal(call.parentSpanId, spanId);
        assert.equal(call.traceState, 'vendor=value');
        assert.equal(call.status, 0);
        assert.equal(call.resource['service.name'], 'wharfinger');
        assert.equal(call.resource['deployment.environment.name'], 'test');
        const { 'enduser.id': caller, 'wharf.request_id': requestId, ...attributes } = call.attributes;
        assert.match(String(caller), /^[0-9a-f/]{40,}$/);
        assert.deepEqual(attributes, {
          'wharf.wire': wire,
          'client.address': '127.0.0.1',
          ...(wire === 'rest'
            ? {
                'http.request.method': 'POST',
                'http.route': '/iam/v2/groups/{parent=**}',
                'http.response.status_code': 200,
              }
            : { 'rpc.system.name': 'grpc', 'rpc.method': CREATE_GROUP, 'rpc.status_code': 'OK' }),
        });
        const handle = named(spans, 'handle');
        for (const step of [named(spans, 'authenticate'), named(spans, 'authorize'), handle]) {
          assert.equal(step.parentSpanId, call.spanId, step.name);
        }
        // The first use of a token writes too, as a step of the authentication.
        const ofHandle = spans.filter(({ parentSpanId }) => parentSpanId === handle.spanId);
        const transaction = named(ofHandle, 'database transaction');
        assert.equal(transaction.attributes['db.system.name'], database.name.toLowerCase());
        const line = lines.find((fields) => fields.requestId === requestId);
        assert.equal(line?.traceId, traceId);
      });

      test(`a refusal over ${wire} names its trace`, async () => {
        const { traceId, spanId } = newTrace();
        const error = await createGroup(server, 'x', { traceparent: `00-${traceId}-${spanId}-01` });
        assert.ok(error?.includes(`trace ${traceId}`), error);
        const call = named(await trace(traceId), CREATE_GROUP);
        assert.equal(call.attributes['error.type'], 'INVALID_ARGUMENT');
        // The fault of the client.
        assert.equal(call.status, 0);
      });

      test(`a trusted proxy decides over ${wire} that a call is not recorded`, async () => {
        const [silent, recorded] = [newTrace(), newTrace()];
        await createGroup(server, newName(), { traceparent: `00-${silent.traceId}-${silent.spanId}-00` });
        await createGroup(server, newName(), { traceparent: `00-${recorded.traceId}-${recorded.spanId}-01` });
        await trace(recorded.traceId);
        assert.deepEqual(spansOf(silent.traceId), []);
        assert.ok(lines.some((fields) => fields.traceId === silent.traceId));
      });
    }

    test('a push is a trace for each request, without upload ids', async () => {
      const client = ociClient(server.url, `Bearer ${server.token}`);
      await pushImage(client, 'my-org/app', 'latest');
      client.close();
      const put = await pollUntil(
        async () => receiver.spans.find(({ name }) => name.endsWith('DistributionService/PutManifest')),
        (span) => span !== undefined,
      );
      assert.equal(put?.attributes['http.route'], '/v2/{name=**}/manifests/{reference}');
      assert.equal(put?.attributes['http.response.status_code'], 201);
      assert.equal(put?.attributes['wharf.wire'], 'oci');
      const steps = spansOf(put?.traceId ?? '');
      assert.equal(named(steps, 'authenticate').parentSpanId, put?.spanId);
      assert.equal(named(steps, 'database transaction').parentSpanId, put?.spanId);
      const uploads = receiver.spans.filter(({ attributes }) => String(attributes['http.route']).includes('uploads'));
      assert.ok(uploads.length > 0);
      for (const { attributes } of uploads) assert.match(String(attributes['http.route']), /uploads\/(\{upload\})?$/);
    });

    test('a delivery links to the call that caused it, and the sink gets both contexts', async () => {
      await subscribe('REST', server, server.organization, sink.url);
      const { traceId, spanId } = newTrace();
      const name = newName();
      await overRest(server, name, { traceparent: `00-${traceId}-${spanId}-01` });
      const delivered = await pollUntil(
        async () => sink.received.find(({ body }) => body.includes(`"${name}"`)),
        (request) => request !== undefined,
      );
      const [, causeTrace, causeSpan] = String(delivered?.attributes.traceparent).split('-');
      assert.equal(causeTrace, traceId);
      const [, attemptTrace = '', attemptSpan] = String(delivered?.headers.traceparent).split('-');
      assert.notEqual(attemptTrace, traceId);
      const attempt = await pollUntil(
        async () => spansOf(attemptTrace)[0],
        (span) => span !== undefined,
      );
      assert.equal(attempt?.name, 'deliver event');
      assert.equal(attempt?.kind, 3);
      assert.equal(attempt?.spanId, attemptSpan);
      assert.equal(attempt?.parentSpanId, '');
      assert.deepEqual(attempt?.links, [{ traceId, spanId: causeSpan }]);
      assert.ok(spansOf(traceId).some((span) => span.spanId === causeSpan));
      assert.equal(attempt?.attributes['http.response.status_code'], 204);
      assert.equal(attempt?.attributes['cloudevents.event_id'], delivered?.attributes.id);
    });

    test('the request for the keys of an issuer is a step, and the issuer gets the context', async (t) => {
      const key = newKey('1');
      const issuer = await startIssuer(t, key);
      const seen: (string | undefined)[] = [];
      issuer.handler = (req, res) => {
        seen.push(req.headers.traceparent?.toString());
        res.end(JSON.stringify(issuer.documents[req.url ?? '']));
      };
      const api = wires[0]?.connect(server.url, server.token) ?? assert.fail();
      await api.call(IdentitiesService.method.createIdentity, {
        parent: server.organization,
        identity: {
          name: 'robot',
          relationship: {
            case: 'claimMatch',
            value: { iss: { case: 'issuer', value: issuer.url }, sub: { case: 'subject', value: 'robot' } },
          },
        },
      });
      api.close();
      const now = Math.floor(Date.now() / 1000);
      const token = await sign({ iss: issuer.url, sub: 'robot', aud: server.url, iat: now, exp: now + 600 }, key);
      const { traceId, spanId } = newTrace();
      const headers = { authorization: `Bearer ${token}`, traceparent: `00-${traceId}-${spanId}-01` };
      assert.equal((await fetch(`${server.url}/iam/v2/roles`, { headers })).status, 200);
      const fetches = (await trace(traceId)).filter((span) => span.name === 'fetch JSON');
      assert.deepEqual(
        seen,
        fetches.map((span) => `00-${traceId}-${span.spanId}-01`),
      );
      assert.equal(seen.length, 2);
    });

    test('concurrent creates do not mix their traces', async () => {
      const traces = Array.from({ length: 20 }, newTrace);
      await Promise.all(
        traces.map(({ traceId, spanId }, index) =>
          (index % 2 === 0 ? overRest : overGrpc)(server, `name-${traceId}`.slice(0, 60), {
            traceparent: `00-${traceId}-${spanId}-01`,
          }),
        ),
      );
      const events = await pollUntil(
        async () => sink.received.filter(({ body }) => body.includes('"name-')),
        (received) => received.length === traces.length,
      );
      for (const { body, attributes } of events) {
        const { traceId = '' } = traces.find((one) => body.includes(`name-${one.traceId}`.slice(0, 60))) ?? {};
        assert.equal(attributes.traceparent?.split('-')[1], traceId);
      }
    });
  });
}

test('a server process exports its last spans when it stops', async () => {
  const receiver = await startOtlpReceiver();
  const location = await (databases[0] ?? assert.fail()).createDataLocation();
  const server = await spawnServer(location, {
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    OTEL_SERVICE_NAME: 'bundled',
  });
  await fetch(`${server.url}/ping/v2/ping`);
  assert.equal(await server.stop(), 0);
  const spans = await pollUntil(
    async () => receiver.spans,
    ({ length }) => length > 0,
  );
  assert.ok(spans.some(({ name, resource }) => name.endsWith('/Ping') && resource['service.name'] === 'bundled'));
  await receiver.close();
  await location.remove();
});

describe('traces without trust', () => {
  test('a client cannot make the server record its calls', async () => {
    const receiver = await startOtlpReceiver();
    const lines: Record<string, unknown>[] = [];
    const server = await startTestServer(databases[0] ?? assert.fail(), {
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_TRACES_SAMPLER: 'parentbased_always_off' },
      log: createLogger({ level: 'info', destination: { write: (line) => lines.push(JSON.parse(line)) } }),
    });
    const { traceId, spanId } = newTrace();
    await overRest(server, newName(), { traceparent: `00-${traceId}-${spanId}-01` });
    // Exports what was recorded.
    await server.remove();
    await receiver.close();
    assert.deepEqual(receiver.spans, []);
    // Its trace id is still that of the log.
    assert.ok(lines.some((fields) => fields.traceId === traceId));
  });

  test('a collector that is down affects neither calls nor the stop', async () => {
    const lines: Record<string, unknown>[] = [];
    const server = await startTestServer(databases[0] ?? assert.fail(), {
      // Port 9 is for discarding, and nothing listens there.
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9', OTEL_BSP_SCHEDULE_DELAY: '10' },
      log: createLogger({ level: 'info', destination: { write: (line) => lines.push(JSON.parse(line)) } }),
    });
    for (let i = 0; i < 5; i++) assert.equal(await overRest(server, newName()), undefined);
    const started = performance.now();
    await server.remove();
    assert.ok(performance.now() - started < 10_000);
    const warnings = lines.filter(({ message }) => message === 'cannot export traces');
    assert.ok(warnings.length <= 1);
  });
});
