import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { builtinRoleUid } from '../support/callers.ts';
import { databases } from '../support/databases.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

const VIEWER = builtinRoleUid('viewer');
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Identities, roles and role bindings over HTTP with JSON, as the specification describes them. */
for (const database of databases) {
  describe(`IAM in JSON on ${database.name}`, () => {
    let server: TestServer;
    before(async () => {
      server = await startTestServer(database);
    });
    after(() => server.remove());

    async function send(verb: string, path: string, body?: string) {
      const response = await fetch(`${server.url}/iam/v2/${path}`, {
        method: verb,
        headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
        ...(body !== undefined && { body }),
      });
      const text = await response.text();
      return { status: response.status, text, json: text === '' ? undefined : JSON.parse(text) };
    }

    test('an identity without a valid name is refused with the field name', async () => {
      for (const body of ['', '{}', '{"name": ""}', '{"name": "Upper"}', '{"name": "sl/ash"}']) {
        const { status, json } = await send('POST', `identities/${server.organization}`, body);
        assert.equal(status, 400);
        assert.equal(json.code, 3);
        assert.match(json.message, /^Invalid argument: name: /);
        const detail = (name: string) =>
          json.details.find((d: { '@type': string }) => d['@type'].endsWith(`.${name}`)) ?? assert.fail(name);
        assert.equal(detail('ErrorInfo').reason, 'INVALID_ARGUMENT');
        assert.equal(detail('BadRequest').fieldViolations[0].field, 'name');
      }
    });

    test('the viewer role is listed', async () => {
      const { status, json } = await send('GET', 'roles');
      assert.equal(status, 200);
      const viewer = json.roles.find(({ name }: { name: string }) => name === 'viewer');
      assert.equal(viewer.uid, '63921b2c44617e3f2603851537be0123af4a57d7');
      assert.equal(viewer.description, 'Viewer Role (built-in)');
      assert.equal(typeof json.totalCount, 'string');
      assert.equal(json.skipped, 0);
    });

    test('an identity is created, bound to the viewer role, unbound and deleted', async () => {
      const claimMatch = { issuer: 'https://token.actions.example.com', subject: 'repo:acme/app:ref:refs/heads/main' };
      const { json: identity } = await send(
        'POST',
        `identities/${server.organization}`,
        JSON.stringify({ name: 'ci runner', description: 'builds the app', claimMatch }),
      );
      assert.deepEqual(
        { name: identity.name, description: identity.description, claimMatch: identity.claimMatch },
        { name: 'ci runner', description: 'builds the app', claimMatch },
      );
      assert.ok(identity.uid.startsWith(`${server.organization}/`));
      for (const time of [identity.createTime, identity.updateTime, identity.lastSeenTime]) assert.match(time, TIME);

      const body = JSON.stringify({ identityUid: identity.uid, roleUid: VIEWER });
      const { status, json: binding } = await send('POST', `roleBindings/${server.organization}`, body);
      assert.equal(status, 200);
      assert.deepEqual(binding.identity, {
        uid: identity.uid,
        name: 'ci runner',
        description: 'builds the app',
        issuer: claimMatch.issuer,
        subject: claimMatch.subject,
      });
      assert.deepEqual(binding.group, { uid: server.organization, name: 'my-org', description: '' });
      assert.deepEqual(binding.role, { uid: VIEWER, name: 'viewer', description: 'Viewer Role (built-in)' });
      assert.match(binding.createTime, TIME);

      for (const path of [`roleBindings/${binding.uid}`, `identities/${identity.uid}`]) {
        const deleted = await send('DELETE', path);
        assert.equal(deleted.status, 200);
        assert.equal(deleted.text, '');
        assert.equal((await send('GET', path)).status, 404);
      }
    });

    test('a patch without a mask changes the keys that the body has, even when they are empty', async () => {
      const { json: role } = await send(
        'POST',
        `roles/${server.organization}`,
        JSON.stringify({ name: 'lister', description: 'lists', capabilities: ['CAP_IAM_GROUPS_LIST'] }),
      );
      const { json: patched } = await send('PATCH', `roles/${role.uid}`, JSON.stringify({ description: '' }));
      assert.equal(patched.description, undefined);
      assert.deepEqual(patched.capabilities, ['CAP_IAM_GROUPS_LIST']);
      const { json: emptied } = await send('PATCH', `roles/${role.uid}`, JSON.stringify({ capabilities: [] }));
      assert.equal(emptied.capabilities, undefined);
      assert.equal(emptied.name, 'lister');
    });
  });
}
