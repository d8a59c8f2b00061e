import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createRegistry, type DescMessage, fromJson, type JsonObject } from '@bufbuild/protobuf';
import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { v1Files, v2Files } from '../../src/contract/gen/files.js';
import { methodTable } from '../../src/contract/method-table.ts';
import { databases } from '../support/databases.ts';
import { emitV1Events, emitV2Events, OIDC_SECRET } from '../support/emit-events.ts';
import { ociClient, pushImage } from '../support/oci-client.ts';
import { pollUntil } from '../support/poll-until.ts';
import { type BodyNames, publishedEvents, readBodyNames } from '../support/published-events.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { createDeliveryVerifier, type SinkRequest, startSink, type TestSink } from '../support/sink.ts';
import { subscribe } from '../support/subscribe.ts';
import { v2beta1Client } from '../support/version-pairs.ts';
import { type Client, wires } from '../support/wires.ts';

/** Names that the page shows and that this body cannot have. */
const ABSENT = new Set([
  // Oneofs, which the page prints by their names in Go. The body has the chosen field.
  'Relationship',
  'Configuration',
  // Only a failed push or pull has it.
  'error',
]);

const registry = createRegistry(...v1Files, ...v2Files);

/** The published names that are not in a body, as dotted paths. */
function missingNames(names: BodyNames, body: unknown, schema: DescMessage | undefined, path = ''): string[] {
  const json = (Array.isArray(body) ? body[0] : body) as Record<string, unknown> | undefined;
  return [...names].flatMap(([name, nested]) => {
    if (ABSENT.has(`${path}${name}`.replace(/^(?:identity|identity_provider)\./, ''))) return [];
    const value = json?.[name];
    if (value === undefined) return [`${path}${name}`];
    const message = schema?.fields.find((field) => field.name === name)?.message;
    // Times are texts in the JSON of protobuf, which the decoders of receivers require.
    if (!nested || message?.typeName.startsWith('google.protobuf.')) return [];
    return missingNames(nested, value, message, `${path}${name}.`);
  });
}

const emittedTypes = (files: typeof v1Files) =>
  new Set(methodTable(files).flatMap(({ event }) => (event?.audience === 'customer' ? [event.type] : [])));
const v2Types = emittedTypes(v2Files);
const v1Types = emittedTypes(v1Files);
const ofV2 = publishedEvents.filter(({ type }) => v2Types.has(type));

const VERSIONS = ['v1', 'v2beta1', 'v2'] as const;
type Version = (typeof VERSIONS)[number];

/** The `ce-source` paths of an event in a version, by those that are published for another version. */
function sourceIn(version: Version, sources: readonly string[]): string {
  const exact = sources.find((path) => path.split('/')[2] === (version === 'v1' ? 'v1' : 'v2beta1'));
  const path = exact ?? sources[0] ?? assert.fail();
  return version === 'v1' ? path : path.replace(/^(\/\w+\/)\w+/, `$1${version}`);
}

for (const database of databases) {
  describe(`published events on ${database.name}`, () => {
    let server: TestServer;
    let sink: TestSink;
    let verify: ReturnType<typeof createDeliveryVerifier>;
    const clients: Client[] = [];
    let repo = '';

    before(async () => {
      server = await startTestServer(database, { env: { WHARF_ALLOW_INSECURE_SINKS: 'true' } });
      sink = await startSink();
      const { organization } = server;
      const oci = ociClient(server.url, `Bearer ${server.token}`);
      // The first push creates the repo, which is not what is tested.
      const { digest } = await pushImage(oci, 'my-org/app', 'pushed');
      const { uid, secret } = await subscribe('REST', server, organization, sink.url);
      verify = createDeliveryVerifier({ issuer: server.url, subscription: uid, secret });
      const [rest, grpc] = wires.map((wire) => wire.connect(server.url, server.token));
      if (!rest || !grpc) assert.fail();
      clients.push(rest, grpc);
      const { digest: otherDigest } = await pushImage(oci, 'my-org/app', 'other');
      await oci.send('GET', '/v2/my-org/app/manifests/pushed');
      oci.close();
      const { repos } = await rest.call(ReposService.method.listRepos, { uidp: { childrenOf: organization } });
      repo = repos[0]?.uid ?? assert.fail();
      // Each version over another wire: the source of an event does not depend on the wire.
      await emitV1Events({ api: grpc, organization, repo, digest, otherDigest, name: 'by-v1' });
      await emitV2Events({
        api: v2beta1Client({ api: rest, server }),
        organization,
        repo,
        digest,
        otherDigest,
        name: 'by-v2beta1',
      });
      await emitV2Events({ api: grpc, organization, repo, digest, otherDigest, name: 'by-v2' });
    });
    after(async () => {
      for (const client of clients) client.close();
      await server.remove();
      await sink.close();
    });

    /** Waits for a delivery of this type and source, and verifies it. */
    const arrived = async (type: string, source: string) => {
      const isIt = ({ attributes }: SinkRequest) => attributes.type === type && attributes.source === source;
      const found = await pollUntil(
        async () => ({ type, source, request: sink.received.find(isIt) }),
        ({ request }) => request !== undefined,
      );
      const request = found.request ?? assert.fail();
      return { request, event: await verify(request) };
    };

    const assertAsPublished = async (type: string, source: string, names: string): Promise<void> => {
      const { request, event } = await arrived(type, source);
      assert.match(String(request.headers['content-type']), /^application\/json\b/);
      assert.equal(event.audience, 'customer');
      assert.equal(event.specversion, '1.0');
      assert.ok(event.time);
      const { actor, body } = event.data ?? assert.fail();
      assert.equal(event.actor, actor?.subject);
      assert.match(String(event.group), /^(?:\/|[0-9a-f]{40}(?:\/[0-9a-f]{16})*)$/);
      assert.ok(!request.body.includes(OIDC_SECRET) && !request.body.includes('cgscim_'), 'the body has a secret');
      const bodyType = event.bodytype === undefined ? undefined : String(event.bodytype);
      const schema = bodyType === undefined ? undefined : (registry.getMessage(bodyType) ?? assert.fail(bodyType));
      assert.deepEqual(missingNames(readBodyNames(names), body, schema), [], JSON.stringify(body));
      if (schema) {
        // As the decoders of receivers do: unknown names are refused. They accept the names of JSON too.
        fromJson(schema, body as JsonObject);
        assert.doesNotMatch(JSON.stringify(body), /"[a-z]+[A-Z]\w*":/);
      }
    };

    for (const version of VERSIONS) {
      for (const { type, sources, body } of ofV2) {
        if (version === 'v1' && !v1Types.has(type)) continue;
        test(`${type} of ${version}`, () =>
          assertAsPublished(type, `${server.url}${sourceIn(version, sources)}`, body));
      }
    }

    const updated = publishedEvents.find(({ type }) => type.endsWith('.tag.updated.v1')) ?? assert.fail();
    test(`${updated.type}, which only v1 emits`, () =>
      assertAsPublished(updated.type, `${server.url}${updated.sources[0]}`, updated.body));

    for (const kind of ['push', 'pull']) {
      test(`a ${kind} has the host name of the registry as its source`, () => {
        const { type, body } =
          publishedEvents.find((event) => event.type === `dev.chainguard.registry.${kind}.v1`) ?? assert.fail();
        // The tag of a pushed manifest, which comes after its blobs.
        return assertAsPublished(
          type,
          new URL(server.url).hostname,
          kind === 'push' ? body.replace(' tag,', '') : body,
        );
      });
    }

    test('a new README is an update of the repo, with the README', async () => {
      const updates = await pollUntil(
        async () =>
          sink.received
            .filter(({ attributes }) => attributes.type?.endsWith('.repo.updated.v1'))
            .map(({ body }) => (JSON.parse(body) as { body: Record<string, unknown> }).body)
            .filter(({ readme }) => readme === '# emitted'),
        (found) => found.length === 2,
      );
      for (const body of updates) assert.equal(typeof body.name, 'string');
    });
  });
}
