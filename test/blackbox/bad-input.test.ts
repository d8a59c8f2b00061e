import assert from 'node:assert/strict';
import { Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { create, toBinary } from '@bufbuild/protobuf';
import { credentials, Client as GrpcClient, Metadata } from '@grpc/grpc-js';
import fc from 'fast-check';
import {
  CreateGroupRequestSchema,
  ListGroupsRequestSchema,
} from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { files, methodTable } from '../../src/contract/method-table.ts';
import { databases } from '../support/databases.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

const RUNS = 1500;

interface RawResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

for (const database of databases) {
  describe(`malformed input on ${database.name}`, () => {
    let server: TestServer;
    const agent = new Agent({ keepAlive: true });
    const failures: string[] = [];
    before(async () => {
      const log = {
        debug() {},
        info() {},
        warn() {},
        error: (fields: object, message: string) => failures.push(`${message} ${JSON.stringify(fields)}`),
      };
      server = await startTestServer(database, { log });
    });
    after(async () => {
      agent.destroy();
      await server.remove();
    });

    /** Sends exactly these bytes as path and body. A client library would normalize them. */
    function send(method: string, path: string, body?: Uint8Array, type = 'application/json'): Promise<RawResponse> {
      return new Promise((resolve, reject) => {
        const { hostname, port } = new URL(server.url);
        const headers = {
          authorization: `Bearer ${server.token}`,
          ...(body && { 'content-type': type, 'content-length': body.length }),
        };
        const req = httpRequest({ agent, hostname, port, method, path, headers, insecureHTTPParser: false }, (res) => {
          const chunks: Buffer[] = [];
          res.on('data', (chunk: Buffer) => chunks.push(chunk));
          res.on('end', () =>
            resolve({ status: res.statusCode ?? 0, headers: res.headers, text: Buffer.concat(chunks).toString() }),
          );
        });
        req.on('error', reject);
        req.end(body);
      });
    }

    /** Asserts a success, or a client error with a well-formed body. */
    function assertSuccessOrClientError({ status, text }: RawResponse, what: string): void {
      assert.ok([200, 400, 403, 404, 405, 409, 413].includes(status), `${status} for ${what}: ${text.slice(0, 300)}`);
      if (status === 200) return;
      const { code, message, details } = JSON.parse(text);
      assert.ok(Number.isInteger(code) && typeof message === 'string' && Array.isArray(details), text);
      assert.ok(!/\bat \S+:\d+|node_modules|\.ts\b|SQLITE|syntax error at/.test(message), `internals leak: ${message}`);
    }

    async function refused(response: Promise<RawResponse>, field: string): Promise<void> {
      const { status, text } = await response;
      assert.equal(status, 400, text);
      const { code, details } = JSON.parse(text);
      assert.equal(code, 3);
      const bad = details.find((detail: { '@type': string }) => detail['@type'].endsWith('BadRequest'));
      assert.equal(bad.fieldViolations[0].field, field, text);
    }

    const text = (value: string) => Buffer.from(value);
    const groups = () => `/iam/v2/groups/${server.organization}`;

    test('each malformed value is refused with the name of its field', async () => {
      const post = (body: Uint8Array | string) => send('POST', groups(), typeof body === 'string' ? text(body) : body);
      await refused(post('{"name": '), 'body');
      await refused(post('["name"]'), 'body');
      await refused(post('"name"'), 'body');
      await refused(post(Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d])), 'body');
      await refused(post('{"name": 5}'), 'name');
      await refused(post('{"name": ["abc"]}'), 'name');
      await refused(post('{"name": "abc", "colour": "red"}'), 'colour');
      await refused(post('{"name": "abc", "verified": "yes"}'), 'verified');
      await refused(post('{"name": "abc", "kind": "ORG_KIND_NONE"}'), 'kind');
      await refused(post(`{"name": "${'x'.repeat(1024 * 1024)}"}`), 'name');
      await refused(post('{"name": "nul\\u0000"}'), 'name');
      await refused(post('{"name": "\\ud800"}'), 'name');
      await refused(send('GET', '/iam/v2/groups?page_size=ten'), 'page_size');
      await refused(send('GET', '/iam/v2/groups?page_size=99999999999'), 'page_size');
      await refused(send('GET', '/iam/v2/groups?skip=1&skip=2'), 'skip');
      await refused(send('GET', '/iam/v2/groups?pageSize=1&page_size=2'), 'page_size');
      await refused(send('GET', '/iam/v2/groups?colour=red'), 'colour');
      await refused(send('GET', '/iam/v2/groups?order_by=name%3BDROP%20TABLE%20resource'), 'order_by');
      await refused(send('GET', '/iam/v2/groups?page_token=%00'), 'page_token');
      await refused(send('GET', '/iam/v2/groups/%00'), 'uid');
      await refused(send('GET', '/iam/v2/groups/../../etc/passwd'), 'uid');
      await refused(send('GET', '/iam/v2/groups/%zz'), 'uid');
      await refused(send('GET', '/iam/v2/groups/%ff%fe'), 'uid');
      await refused(send('PATCH', `${groups()}?updateMask=${'name,'.repeat(10_000)}name`, text('{}')), 'update_mask');
    });

    test('a deeply nested or too large body is refused', async () => {
      assertSuccessOrClientError(await send('POST', groups(), text('['.repeat(2_000_000))), 'two million brackets');
      assertSuccessOrClientError(
        await send('POST', groups(), text(`{"name":${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}}`)),
        'depth',
      );
      const { status } = await send('POST', groups(), Buffer.alloc(5 * 1024 * 1024, 0x20));
      assert.equal(status, 413);
    });

    test('unknown paths and wrong verbs get the usual error body', async () => {
      for (const path of ['/', '/iam', '/iam/v2', '/iam/v3/groups', '/iam/v2/groupz', '//', '/iam/v2/groups:nothing']) {
        const response = await send('GET', path);
        assert.equal(response.status, 404, path);
        assertSuccessOrClientError(response, path);
      }
      const response = await send('PUT', '/iam/v2/groups');
      assert.equal(response.status, 405);
      assert.match(String(response.headers.allow), /GET/);
      assertSuccessOrClientError(response, 'PUT');
    });

    const anyBytes = fc.uint8Array({ maxLength: 200 });
    const hostile = fc.oneof(
      fc.string(),
      fc.string({ unit: 'binary' }),
      fc.constantFrom(
        '..',
        '%2e%2e',
        '\u0000',
        "' OR 1=1 --",
        '{}',
        '[]',
        '-1',
        '1e400',
        'null',
        'true',
        '\ud800',
        '٣',
        'a'.repeat(5000),
      ),
      fc.integer().map(String),
      fc.double().map(String),
    );

    test(`${RUNS} hostile requests over REST get a success or a client error`, async () => {
      const routes = methodTable(files).flatMap((method) => method.routes);
      const route = fc.constantFrom(...routes);
      const key = fc.oneof(
        fc.constantFrom(
          'page_size',
          'pageToken',
          'order_by',
          'skip',
          'uidp.ids',
          'uidp.descendants_of',
          'uidp',
          'name',
          'updateMask',
          'update_mask.paths',
        ),
        hostile,
      );
      const query = fc.array(fc.tuple(key, hostile), { maxLength: 4 });
      const body = fc.oneof(
        anyBytes,
        fc.json().map(text),
        fc.dictionary(key, fc.jsonValue()).map((o) => text(JSON.stringify(o))),
      );
      await fc.assert(
        fc.asyncProperty(route, hostile, query, fc.option(body), async ({ verb, template }, value, pairs, bytes) => {
          const filled: string = template.replace(/\{[^}]*\}/g, () => encodeURIComponent(value.toWellFormed()));
          const search = new URLSearchParams(
            pairs.map(([k, v]): [string, string] => [k.toWellFormed(), v.toWellFormed()]),
          ).toString();
          const response = await send(verb, `${filled}?${search}`, bytes ?? undefined);
          // Methods without an implementation.
          if (response.status !== 501) assertSuccessOrClientError(response, `${verb} ${filled}?${search}`);
        }),
        { seed: 3, numRuns: RUNS },
      );
      assert.deepEqual(failures, []);
    });

    test(`${RUNS} hostile messages over gRPC get a success or a client error`, async (t) => {
      const client = new GrpcClient(new URL(server.url).host, credentials.createInsecure());
      t.after(() => client.close());
      const metadata = new Metadata();
      metadata.set('authorization', `Bearer ${server.token}`);
      const call = (path: string, bytes: Uint8Array) =>
        new Promise<number>((resolve) => {
          const done = (error: { code: number } | null) => resolve(error?.code ?? 0);
          client.makeUnaryRequest(
            path,
            (b: Buffer) => b,
            (b: Buffer) => b,
            Buffer.from(bytes),
            metadata,
            done,
          );
        });
      const wellFormed = fc.string({ unit: 'binary' }).map((s) => s.toWellFormed());
      const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
      const list = fc
        .record({
          pageSize: int32,
          pageToken: wellFormed,
          orderBy: wellFormed,
          skip: int32,
          name: wellFormed,
          uidp: fc.record({ ids: fc.array(wellFormed), descendantsOf: wellFormed }),
        })
        .map((init): [string, Uint8Array] => [
          'ListGroups',
          toBinary(ListGroupsRequestSchema, create(ListGroupsRequestSchema, init)),
        ]);
      const make = fc
        .record({ parent: wellFormed, group: fc.record({ name: wellFormed, description: wellFormed }) })
        .map((init): [string, Uint8Array] => [
          'CreateGroup',
          toBinary(CreateGroupRequestSchema, create(CreateGroupRequestSchema, init)),
        ]);
      const noise = fc
        .tuple(fc.constantFrom('GetGroup', 'ListGroups', 'CreateGroup', 'UpdateGroup', 'DeleteGroup'), anyBytes)
        .map(([name, bytes]): [string, Uint8Array] => [name, bytes]);
      await fc.assert(
        fc.asyncProperty(fc.oneof(list, make, noise), async ([name, bytes]) => {
          const code = await call(`/chainguard.platform.iam.v2.GroupsService/${name}`, bytes);
          assert.ok(
            [0, 3, 5, 6, 7, 9].includes(code),
            `code ${code} from ${name} for ${Buffer.from(bytes).toString('hex')}`,
          );
        }),
        { seed: 3, numRuns: RUNS },
      );
      assert.deepEqual(failures, []);
    });
  });
}
