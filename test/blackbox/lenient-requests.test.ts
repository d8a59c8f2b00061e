import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Method, needsAuthentication, type Route } from '../../src/contract/method.ts';
import { files, methodTable } from '../../src/contract/method-table.ts';
import { withV2beta1 } from '../../src/contract/v2beta1.ts';
import { versionOf } from '../../src/contract/version.ts';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import { databases } from '../support/databases.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

const methods = withV2beta1(methodTable(files));
const FORM = 'application/x-www-form-urlencoded';

interface Violation {
  readonly field: string;
}

interface ApiResponse {
  readonly status: number;
  readonly json: { readonly details?: readonly { readonly fieldViolations?: readonly Violation[] }[] };
}

/** Every route with its path: a uid that does not exist where it takes slashes, `x` elsewhere. */
const routesOf = (method: Method, uid: string): readonly { readonly route: Route; readonly path: string }[] =>
  method.routes.map((route) => ({
    route,
    path: route.template.replace(/\{[\w.]+(?:=([^}]*))?\}/g, (_, pattern?: string) => (pattern === '**' ? uid : 'x')),
  }));

const violatedFields = ({ json }: ApiResponse): readonly string[] =>
  (json.details ?? []).flatMap(({ fieldViolations = [] }) => fieldViolations.map(({ field }) => field));

for (const database of databases) {
  describe(`what REST accepts on ${database.name}`, () => {
    let server: TestServer;
    let store: Store;
    before(async () => {
      server = await startTestServer(database);
      store = await openStore(server.dataLocation);
    });
    after(async () => {
      await store.close();
      await server.remove();
    });

    const missingUid = () => `${server.organization}/${'0'.repeat(16)}`;

    async function send(
      verb: string,
      path: string,
      options: { readonly body?: string; readonly headers?: Record<string, string> } = {},
    ): Promise<ApiResponse> {
      // A body of bytes gets no Content-Type by itself.
      const body = options.body === undefined ? null : new TextEncoder().encode(options.body);
      const headers = options.headers ?? { authorization: `Bearer ${server.token}` };
      const response = await fetch(`${server.url}${path}`, { method: verb, headers, body });
      const text = await response.text();
      return { status: response.status, json: text === '' ? {} : JSON.parse(text) };
    }

    test('an unknown parameter is refused by every method, but ignored by those of v1', async () => {
      for (const method of methods) {
        for (const { route, path } of routesOf(method, missingUid())) {
          const options = route.body === undefined ? {} : { body: '{}' };
          const response = await send(route.verb, `${path}?no_such_parameter=1`, options);
          const isRefused = violatedFields(response).includes('no_such_parameter');
          assert.equal(isRefused, versionOf(method) !== 'v1', `${method.id} at ${path}: ${JSON.stringify(response)}`);
        }
      }
    });

    test('an unknown field is refused by every method, but ignored by those of v1', async () => {
      let count = 0;
      for (const method of methods) {
        for (const { route, path } of routesOf(method, missingUid())) {
          const bodyField = method.desc.input.fields.find(({ name }) => name === route.body);
          if (route.body === undefined || (bodyField && bodyField.fieldKind !== 'message')) continue;
          const response = await send(route.verb, path, { body: '{"noSuchField":{"a":[1]}}' });
          const isRefused = violatedFields(response).includes('noSuchField');
          assert.equal(isRefused, versionOf(method) !== 'v1', `${method.id} at ${path}: ${JSON.stringify(response)}`);
          count++;
        }
      }
      assert.ok(count > 50, `${count} routes`);
    });

    test('a v1 request with names of another version works, at every depth', async () => {
      const parent = server.organization;
      const body = JSON.stringify({ name: 'lenient', descriptoin: 'x', resource_limits: { groups: 1 } });
      const created = await send('POST', `/iam/v1/groups/${parent}?updateMask=name`, { body });
      assert.equal(created.status, 200, JSON.stringify(created));
      const { id } = created.json as { id: string };

      const identity = { name: 'lenient', claim_match: { issuer: 'https://issuer.example.com', subject: 's', nbf: 1 } };
      const made = await send('POST', `/iam/v1/identities/${id}`, { body: JSON.stringify(identity) });
      assert.equal(made.status, 200, JSON.stringify(made));

      const list = await send('GET', `/iam/v1/groups?uidp.descendants_of=${parent}&uidp.no_such=1&page_size=5`);
      assert.equal(list.status, 200, JSON.stringify(list));
      const identityId = (made.json as { id: string }).id;
      assert.equal((await send('DELETE', `/iam/v1/identities/${identityId}`, { body: '{"force":true}' })).status, 200);
    });

    test('v1 still refuses known names with invalid values', async () => {
      const response = await send('POST', `/iam/v1/groups/${server.organization}`, { body: '{"name":1,"x":2}' });
      assert.deepEqual([response.status, violatedFields(response)], [400, ['name']]);
    });

    for (const version of ['v2', 'v2beta1', 'v1']) {
      for (const type of [FORM, 'text/plain', 'application/octet-stream', '']) {
        test(`a JSON body with the content type "${type}" is JSON in ${version}`, async () => {
          const name = `${version} ${type.replace(/\W/g, ' ')}`;
          const path = `/iam/${version}/groups/${server.organization}`;
          const headers = { authorization: `Bearer ${server.token}`, ...(type && { 'content-type': type }) };
          const { status, json } = await send('POST', path, { headers, body: JSON.stringify({ name }) });
          assert.deepEqual([status, (json as { name?: string }).name], [200, name]);
        });
      }
    }

    test('a form is read as a form by the token exchange, and by nothing else', async () => {
      const headers = { authorization: `Bearer ${server.token}`, 'content-type': FORM };
      const aud = encodeURIComponent(server.url);
      assert.equal((await send('POST', '/sts/exchange', { headers, body: `aud=${aud}` })).status, 200);
      // As a form, this is one parameter with a strange name, so the audience is missing.
      const json = JSON.stringify({ aud: [server.url] });
      const asForm = await send('POST', '/sts/exchange', { headers, body: json });
      assert.deepEqual([asForm.status, violatedFields(asForm)], [400, ['aud']]);
      const group = await send('POST', `/iam/v2/groups/${server.organization}`, { headers, body: 'name=form' });
      assert.deepEqual([group.status, violatedFields(group)], [400, ['body']]);
    });

    test('a form of another site changes nothing, whatever cookies the browser sends', async () => {
      const state = async () => ({
        resources: await store.reader.all('SELECT kind, uid, body FROM resource ORDER BY kind, uid'),
        events: await store.reader.all('SELECT id FROM outbox ORDER BY id'),
      });
      const before = await state();
      const cookies = ['token', 'authorization', 'session', 'access_token'].map((name) => `${name}=${server.token}`);
      for (const method of methods) {
        for (const { route, path } of routesOf(method, server.organization)) {
          if (route.verb !== 'POST') continue;
          for (const type of [FORM, 'text/plain', 'multipart/form-data; boundary=x']) {
            const headers = { origin: 'https://evil.example', cookie: cookies.join('; '), 'content-type': type };
            const body = '{"name":"forged","parent":"","aud":["x"]}';
            const { status } = await send('POST', path, { headers, body });
            // Public methods are the token exchange and the registration. They take the token from the header only.
            assert.equal(
              status,
              401,
              `${method.id} (${needsAuthentication(method) ? 'authenticated' : method.access})`,
            );
          }
        }
      }
      for (const path of ['/v2/token', `/v2/${server.organization}/blobs/uploads/`]) {
        const headers = { origin: 'https://evil.example', cookie: cookies.join('; '), 'content-type': FORM };
        const { status } = await send('POST', path, { headers, body: 'service=x&grant_type=password' });
        assert.ok([400, 401, 404].includes(status), `${path}: ${status}`);
      }
      assert.deepEqual(await state(), before);
    });
  });
}
