import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openMasterKeys } from '../../src/identity/master-key.ts';
import { revokeKey } from '../../src/identity/tokens/rotate-and-revoke-keys.ts';
import { openStore } from '../../src/store/open.ts';
import { callerWithRole } from '../support/callers.ts';
import { databases } from '../support/databases.ts';
import { basicAuth, digestOf, errorCodesIn, fetchTokenForChallenge, pushImage } from '../support/oci-client.ts';
import { createOciFixture, onEveryDatabase } from '../support/oci-fixture.ts';

const claimsIn = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
const json = (body: Buffer) => JSON.parse(body.toString('utf8'));

onEveryDatabase('registry tokens', (fixture) => {
  /** Creates a team, and a caller with a role on it that can request tokens. */
  async function newCaller(role: string) {
    const team = await fixture.newTeam();
    const password = await (await callerWithRole(fixture.server, role, team.uid)).token();
    const client = fixture.as(basicAuth(password));
    const requestToken = async (...scopes: string[]) => {
      const query = scopes.map((scope) => `&scope=${encodeURIComponent(scope)}`).join('');
      const { status, body } = await client.send('GET', `/v2/token?service=here${query}`);
      assert.equal(status, 200, body.toString());
      return json(body);
    };
    return { team, password, client, requestToken };
  }

  test('docker login, push and pull work with the tokens of their challenges', async () => {
    const { team, password } = await newCaller('registry.push');
    const name = `${team.name}/app`;
    const login = await fetchTokenForChallenge(
      (await fixture.as().send('GET', '/v2/')).headers['www-authenticate'],
      password,
    );
    assert.equal((await fixture.as(`Bearer ${login}`).send('GET', '/v2/')).status, 200);

    const begin = await fixture.as().send('POST', `/v2/${name}/blobs/uploads/`);
    assert.match(begin.headers['www-authenticate'] ?? '', new RegExp(`scope="repository:${name}:pull,push"`));
    const token = await fetchTokenForChallenge(begin.headers['www-authenticate'], password);
    const manifest = await pushImage(fixture.as(`Bearer ${token}`), name, 'v1');
    const pull = await fixture.as().send('GET', `/v2/${name}/manifests/v1`);
    const pullToken = await fetchTokenForChallenge(pull.headers['www-authenticate'], password);
    const pulled = await fixture.as(`Bearer ${pullToken}`).send('GET', `/v2/${name}/manifests/v1`);
    assert.deepEqual(pulled.body, manifest.bytes);
  });

  test('a token is valid for five minutes and for one repo', async () => {
    const { team, requestToken, client } = await newCaller('registry.push');
    const [mine, sibling] = [`${team.name}/mine`, `${team.name}/sibling`];
    for (const name of [mine, sibling]) await pushImage(client, name, 'v1');
    const before = Math.floor(Date.now() / 1000) * 1000;
    const response = await requestToken(`repository:${mine}:pull`);
    assert.equal(response.expires_in, 300);
    assert.equal(response.token, response.access_token);
    const issued = Date.parse(response.issued_at);
    assert.ok(issued >= before && issued <= Date.now(), response.issued_at);
    const { exp, iat } = claimsIn(response.token);
    assert.ok(exp - iat <= 301);

    const narrow = fixture.as(`Bearer ${response.token}`);
    const status = async (verb: string, path: string) => (await narrow.send(verb, path)).status;
    assert.equal(await status('GET', `/v2/${mine}/manifests/v1`), 200);
    // Outside of the scope of the token, the challenge names the scope to request.
    for (const [verb, path, scope] of [
      ['GET', `/v2/${sibling}/manifests/v1`, `repository:${sibling}:pull`],
      ['POST', `/v2/${mine}/blobs/uploads/`, `repository:${mine}:pull,push`],
      ['DELETE', `/v2/${mine}/manifests/v1`, `repository:${mine}:pull,delete`],
    ] as const) {
      const { status, headers } = await narrow.send(verb, path);
      assert.equal(status, 401, path);
      assert.ok(headers['www-authenticate']?.includes(`scope="${scope}",error="insufficient_scope"`));
    }
    assert.equal((await narrow.send('GET', `/iam/v2/groups/${team.uid}`)).status, 401);
  });

  test('a token for a repo that does not exist yet is valid for no other repo', async () => {
    const { team, requestToken } = await newCaller('registry.push');
    const { token } = await requestToken(`repository:${team.name}/new:pull,push`);
    const narrow = fixture.as(`Bearer ${token}`);
    assert.equal((await narrow.send('POST', `/v2/${team.name}/other/blobs/uploads/`)).status, 401);
    await pushImage(narrow, `${team.name}/new`, 'v1');
  });

  test('a token grants no more than its owner may do, and reveals nothing out of reach', async () => {
    const { team, requestToken } = await newCaller('viewer');
    await pushImage(fixture.owner, `${team.name}/seen`, 'v1');
    const theirs = await fixture.newTeam();
    await pushImage(fixture.owner, `${theirs.name}/hidden`, 'v1');
    const { token } = await requestToken(
      `repository:${team.name}/seen:pull,push,delete`,
      `repository:${theirs.name}/hidden:*`,
    );
    const narrow = fixture.as(`Bearer ${token}`);
    assert.equal((await narrow.send('GET', `/v2/${team.name}/seen/manifests/v1`)).status, 200);
    const push = await narrow.send('POST', `/v2/${team.name}/seen/blobs/uploads/`);
    assert.deepEqual([push.status, errorCodesIn(push)], [403, ['DENIED']]);
    assert.equal((await narrow.send('GET', `/v2/${theirs.name}/hidden/manifests/v1`)).status, 403);
    assert.ok(!JSON.stringify(claimsIn(token)).includes(theirs.uid));
  });

  test('a token for two repos allows a mount from one to the other', async () => {
    const { team, requestToken, client, password } = await newCaller('registry.push');
    const [source, target] = [`${team.name}/source`, `${team.name}/target`];
    const content = Buffer.from('to be mounted');
    await client.pushBlob(source, content);
    await client.pushBlob(target, Buffer.from('there already'));
    const path = `/v2/${target}/blobs/uploads/?mount=${digestOf(content)}&from=${source}`;
    const { token } = await requestToken(`repository:${target}:pull,push`);
    const refused = await fixture.as(`Bearer ${token}`).send('POST', path);
    assert.equal(refused.status, 401);
    const wider = await fetchTokenForChallenge(refused.headers['www-authenticate'], password);
    assert.equal((await fixture.as(`Bearer ${wider}`).send('POST', path)).status, 201);
    // The challenge to an unauthenticated client names both scopes.
    const challenge = (await fixture.as().send('POST', path)).headers['www-authenticate'] ?? '';
    assert.ok(challenge.includes(`scope="repository:${target}:pull,push repository:${source}:pull"`), challenge);
  });

  test('an access token can be used as password, and its token scope limits the registry token', async () => {
    const { team, password } = await newCaller('registry.push');
    const name = `${team.name}/ours`;
    await pushImage(fixture.owner, name, 'v1');
    const exchange = async (query: string) => {
      const path = `/sts/exchange?aud=${encodeURIComponent(fixture.server.url)}${query}`;
      const { status, body } = await fixture.as(`Bearer ${password}`).send('POST', path);
      assert.equal(status, 200, body.toString());
      return String(json(body).token);
    };
    const scope = encodeURIComponent(`repository:${name}:pull,push`);
    const registryClient = async (token: string) => {
      const { body } = await fixture.as(basicAuth(token)).send('GET', `/v2/token?service=here&scope=${scope}`);
      return fixture.as(`Bearer ${json(body).token}`);
    };
    const whole = await exchange('');
    for (const client of [fixture.as(basicAuth(whole)), fixture.as(`Bearer ${whole}`), await registryClient(whole)]) {
      assert.equal((await client.send('GET', `/v2/${name}/manifests/v1`)).status, 200);
      assert.equal((await client.send('POST', `/v2/${name}/blobs/uploads/`)).status, 202);
    }
    const reading = await exchange('&cap=repo.list&cap=manifest.list&cap=tag.list');
    for (const client of [fixture.as(basicAuth(reading)), await registryClient(reading)]) {
      assert.equal((await client.send('GET', `/v2/${name}/manifests/v1`)).status, 200);
      assert.equal((await client.send('POST', `/v2/${name}/blobs/uploads/`)).status, 403);
    }
    const elsewhere = await exchange(`&scopes=${(await fixture.newTeam()).uid}`);
    for (const client of [fixture.as(basicAuth(elsewhere)), await registryClient(elsewhere)]) {
      assert.equal((await client.send('GET', `/v2/${name}/manifests/v1`)).status, 403);
    }
  });

  test('a registry token cannot be exchanged for another token', async () => {
    const { team, requestToken } = await newCaller('registry.push');
    const { token } = await requestToken(`repository:${team.name}/app:pull`);
    assert.equal((await fixture.as(basicAuth(token)).send('GET', '/v2/token?service=here')).status, 401);
    const exchange = await fixture
      .as(`Bearer ${token}`)
      .send('POST', `/sts/exchange?aud=${encodeURIComponent(fixture.server.url)}`);
    assert.equal(exchange.status, 401, exchange.body.toString());
  });

  test('a token is rejected with the next request after its key was revoked', async () => {
    const { requestToken } = await newCaller('viewer');
    const { token } = await requestToken();
    const client = fixture.as(`Bearer ${token}`);
    assert.equal((await client.send('GET', '/v2/')).status, 200);
    const { kid } = JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString());
    const store = await openStore(fixture.server.dataLocation);
    try {
      const masterKeys = await openMasterKeys(store, {
        dataDir: fixture.server.dataLocation.dataDir,
        configured: undefined,
      });
      assert.ok(await revokeKey(store, masterKeys, kid, Date.now()));
    } finally {
      await store.close();
    }
    assert.equal((await client.send('GET', '/v2/')).status, 401);
  });

  test('the form that docker posts is accepted, and invalid credentials are rejected', async () => {
    const { team, password } = await newCaller('viewer');
    await pushImage(fixture.owner, `${team.name}/posted`, 'v1');
    const anonymous = fixture.as();
    const post = (fields: Record<string, string>) =>
      anonymous.send('POST', '/v2/token', {
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ service: 'here', client_id: 'docker', ...fields }).toString(),
      });
    const scope = `repository:${team.name}/posted:pull`;
    const granted = await post({ grant_type: 'password', username: 'me', password, scope });
    assert.equal(granted.status, 200);
    const client = fixture.as(`Bearer ${json(granted.body).access_token}`);
    assert.equal((await client.send('GET', `/v2/${team.name}/posted/manifests/v1`)).status, 200);

    const rejected = [await post({ scope }), await post({ password: 'wrong', scope })];
    for (const response of [...rejected, await anonymous.send('GET', `/v2/token?scope=${scope}`)]) {
      assert.deepEqual([response.status, errorCodesIn(response)], [401, ['UNAUTHORIZED']]);
      assert.match(response.headers['www-authenticate'] ?? '', /^Basic realm=/);
    }
    assert.equal((await post({ password: 'x'.repeat(100_000) })).status, 413);
  });

  test('invalid scopes are ignored', async () => {
    const { client, requestToken } = await newCaller('owner');
    for (const scope of [
      '',
      'registry:catalog:*',
      'repository:',
      'repository:../x:pull',
      'repository:a"b:pull',
      '::::',
    ]) {
      const { token } = await requestToken(scope);
      assert.deepEqual(claimsIn(token).scopes, []);
    }
    const many = Array.from({ length: 11 }, (_, i) => `scope=repository:a/b${i}:pull`).join('&');
    assert.equal((await client.send('GET', `/v2/token?${many}`)).status, 400);
  });
});

for (const database of databases.slice(0, 1)) {
  let now = Date.now();
  const fixture = createOciFixture(database, { clock: () => now });

  test('a registry token expires after five minutes, also if the access token is valid for longer', async () => {
    const client = fixture.as(basicAuth(fixture.server.token));
    const { body } = await client.send('GET', '/v2/token?service=here');
    const narrow = fixture.as(`Bearer ${json(body).token}`);
    assert.equal((await narrow.send('GET', '/v2/')).status, 200);
    now += 5 * 60_000 + 2_000;
    const late = await narrow.send('GET', '/v2/');
    assert.equal(late.status, 401);
    assert.match(late.body.toString(), /expired/);
    assert.equal((await client.send('GET', '/v2/')).status, 200);
  });
}
