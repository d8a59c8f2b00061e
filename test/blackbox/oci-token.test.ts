import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openMasterKey } from '../../src/identity/master-key.ts';
import { revokeKey } from '../../src/identity/tokens/key-rotation.ts';
import { openStore } from '../../src/store/open.ts';
import { callerWith } from '../support/callers.ts';
import { databases } from '../support/databases.ts';
import { benchOn, onEveryDatabase } from '../support/oci-bench.ts';
import { answerChallenge, basic, codesIn, digestOf, pushImage } from '../support/oci-client.ts';

const claimsIn = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
const json = (body: Buffer) => JSON.parse(body.toString('utf8'));

onEveryDatabase('registry tokens', (bench) => {
  /** Somebody with a role on a team of their own, and how they ask for tokens. */
  async function somebody(role: string) {
    const team = await bench.newTeam();
    const password = await (await callerWith(bench.server, role, team.uid)).token();
    const client = bench.as(basic(password));
    const ask = async (...scopes: string[]) => {
      const query = scopes.map((scope) => `&scope=${encodeURIComponent(scope)}`).join('');
      const { status, body } = await client.send('GET', `/v2/token?service=here${query}`);
      assert.equal(status, 200, body.toString());
      return json(body);
    };
    return { team, password, client, ask };
  }

  test('docker login, push and pull: the challenge leads to a token that does the job', async () => {
    const { team, password } = await somebody('registry.push');
    const name = `${team.name}/app`;
    const login = await answerChallenge((await bench.as().send('GET', '/v2/')).headers['www-authenticate'], password);
    assert.equal((await bench.as(`Bearer ${login}`).send('GET', '/v2/')).status, 200);

    const begin = await bench.as().send('POST', `/v2/${name}/blobs/uploads/`);
    assert.match(begin.headers['www-authenticate'] ?? '', new RegExp(`scope="repository:${name}:pull,push"`));
    const token = await answerChallenge(begin.headers['www-authenticate'], password);
    const manifest = await pushImage(bench.as(`Bearer ${token}`), name, 'v1');
    const pull = await bench.as().send('GET', `/v2/${name}/manifests/v1`);
    const pullToken = await answerChallenge(pull.headers['www-authenticate'], password);
    const pulled = await bench.as(`Bearer ${pullToken}`).send('GET', `/v2/${name}/manifests/v1`);
    assert.deepEqual(pulled.body, manifest.bytes);
  });

  test('a token lives for five minutes and is good for one repo', async () => {
    const { team, ask, client } = await somebody('registry.push');
    const [mine, sibling] = [`${team.name}/mine`, `${team.name}/sibling`];
    for (const name of [mine, sibling]) await pushImage(client, name, 'v1');
    const before = Date.now();
    const answer = await ask(`repository:${mine}:pull`);
    assert.equal(answer.expires_in, 300);
    assert.equal(answer.token, answer.access_token);
    assert.ok(Math.abs(Date.parse(answer.issued_at) - before) < 10_000);
    const { exp, iat } = claimsIn(answer.token);
    assert.ok(exp - iat <= 301);

    const narrow = bench.as(`Bearer ${answer.token}`);
    const status = async (verb: string, path: string) => (await narrow.send(verb, path)).status;
    assert.equal(await status('GET', `/v2/${mine}/manifests/v1`), 200);
    // Asked for more than it was asked for, it sends its client back for another.
    for (const [verb, path, scope] of [
      ['GET', `/v2/${sibling}/manifests/v1`, `repository:${sibling}:pull`],
      ['POST', `/v2/${mine}/blobs/uploads/`, `repository:${mine}:pull,push`],
      ['DELETE', `/v2/${mine}/manifests/v1`, `repository:${mine}:pull,delete`],
    ] as const) {
      const { status, headers } = await narrow.send(verb, path);
      assert.equal(status, 401, path);
      assert.ok(headers['www-authenticate']?.includes(`scope="${scope}",error="insufficient_scope"`));
    }
    // Nor is it worth more at the API.
    const repos = await narrow.send('GET', `/registry/v2/repos?uidp.children_of=${team.uid}`);
    assert.equal(json(repos.body).totalCount, '0');
    assert.equal((await narrow.send('GET', `/iam/v2/groups/${team.uid}`)).status, 403);
  });

  test('a token for a repo that is yet to be made is good for no other', async () => {
    const { team, ask } = await somebody('registry.push');
    const { token } = await ask(`repository:${team.name}/new:pull,push`);
    const narrow = bench.as(`Bearer ${token}`);
    assert.equal((await narrow.send('POST', `/v2/${team.name}/other/blobs/uploads/`)).status, 401);
    await pushImage(narrow, `${team.name}/new`, 'v1');
  });

  test('a token gives no more than its owner may, and says nothing of what they may not see', async () => {
    const { team, ask } = await somebody('viewer');
    await pushImage(bench.owner, `${team.name}/seen`, 'v1');
    const theirs = await bench.newTeam();
    await pushImage(bench.owner, `${theirs.name}/hidden`, 'v1');
    const { token } = await ask(`repository:${team.name}/seen:pull,push,delete`, `repository:${theirs.name}/hidden:*`);
    const narrow = bench.as(`Bearer ${token}`);
    assert.equal((await narrow.send('GET', `/v2/${team.name}/seen/manifests/v1`)).status, 200);
    const push = await narrow.send('POST', `/v2/${team.name}/seen/blobs/uploads/`);
    assert.deepEqual([push.status, codesIn(push)], [403, ['DENIED']]);
    assert.equal((await narrow.send('GET', `/v2/${theirs.name}/hidden/manifests/v1`)).status, 403);
    assert.ok(!JSON.stringify(claimsIn(token)).includes(theirs.uid));
  });

  test('a token for two repos mounts from one to the other', async () => {
    const { team, ask, client, password } = await somebody('registry.push');
    const [source, target] = [`${team.name}/source`, `${team.name}/target`];
    const content = Buffer.from('to be mounted');
    await client.pushBlob(source, content);
    await client.pushBlob(target, Buffer.from('there already'));
    const path = `/v2/${target}/blobs/uploads/?mount=${digestOf(content)}&from=${source}`;
    const { token } = await ask(`repository:${target}:pull,push`);
    const refused = await bench.as(`Bearer ${token}`).send('POST', path);
    assert.equal(refused.status, 401);
    const better = await answerChallenge(refused.headers['www-authenticate'], password);
    assert.equal((await bench.as(`Bearer ${better}`).send('POST', path)).status, 201);
    // A stranger to the request is told of both at once.
    const challenge = (await bench.as().send('POST', path)).headers['www-authenticate'] ?? '';
    assert.ok(challenge.includes(`scope="repository:${target}:pull,push repository:${source}:pull"`), challenge);
  });

  test('a token of ours is as good as a password, and a narrow one buys no more than itself', async () => {
    const { team, password } = await somebody('registry.push');
    const name = `${team.name}/ours`;
    await pushImage(bench.owner, name, 'v1');
    const exchange = async (query: string) => {
      const path = `/sts/exchange?aud=${encodeURIComponent(bench.server.url)}${query}`;
      const { status, body } = await bench.as(`Bearer ${password}`).send('POST', path);
      assert.equal(status, 200, body.toString());
      return String(json(body).token);
    };
    const scope = encodeURIComponent(`repository:${name}:pull,push`);
    const bought = async (token: string) => {
      const { body } = await bench.as(basic(token)).send('GET', `/v2/token?service=here&scope=${scope}`);
      return bench.as(`Bearer ${json(body).token}`);
    };
    const whole = await exchange('');
    for (const client of [bench.as(basic(whole)), bench.as(`Bearer ${whole}`), await bought(whole)]) {
      assert.equal((await client.send('GET', `/v2/${name}/manifests/v1`)).status, 200);
      assert.equal((await client.send('POST', `/v2/${name}/blobs/uploads/`)).status, 202);
    }
    const reading = await exchange('&cap=repo.list&cap=manifest.list&cap=tag.list');
    for (const client of [bench.as(basic(reading)), await bought(reading)]) {
      assert.equal((await client.send('GET', `/v2/${name}/manifests/v1`)).status, 200);
      assert.equal((await client.send('POST', `/v2/${name}/blobs/uploads/`)).status, 403);
    }
    const elsewhere = await exchange(`&scopes=${(await bench.newTeam()).uid}`);
    for (const client of [bench.as(basic(elsewhere)), await bought(elsewhere)]) {
      assert.equal((await client.send('GET', `/v2/${name}/manifests/v1`)).status, 403);
    }
  });

  test('a registry token buys no other token', async () => {
    const { team, ask } = await somebody('registry.push');
    const { token } = await ask(`repository:${team.name}/app:pull`);
    assert.equal((await bench.as(basic(token)).send('GET', '/v2/token?service=here')).status, 401);
    const exchange = await bench
      .as(`Bearer ${token}`)
      .send('POST', `/sts/exchange?aud=${encodeURIComponent(bench.server.url)}`);
    assert.equal(exchange.status, 401, exchange.body.toString());
  });

  test('a token whose key was revoked is gone for the very next request', async () => {
    const { ask } = await somebody('viewer');
    const { token } = await ask();
    const client = bench.as(`Bearer ${token}`);
    assert.equal((await client.send('GET', '/v2/')).status, 200);
    const { kid } = JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString());
    const store = await openStore(bench.server.home);
    try {
      const masterKey = await openMasterKey(store, { dataDir: bench.server.home.dataDir, configured: undefined });
      assert.ok(await revokeKey(store, masterKey, kid, Date.now()));
    } finally {
      await store.close();
    }
    assert.equal((await client.send('GET', '/v2/')).status, 401);
  });

  test('the form that docker posts is taken, and nobody without credentials is', async () => {
    const { team, password } = await somebody('viewer');
    await pushImage(bench.owner, `${team.name}/posted`, 'v1');
    const anonymous = bench.as();
    const post = (fields: Record<string, string>) =>
      anonymous.send('POST', '/v2/token', {
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ service: 'here', client_id: 'docker', ...fields }).toString(),
      });
    const scope = `repository:${team.name}/posted:pull`;
    const granted = await post({ grant_type: 'password', username: 'me', password, scope });
    assert.equal(granted.status, 200);
    const client = bench.as(`Bearer ${json(granted.body).access_token}`);
    assert.equal((await client.send('GET', `/v2/${team.name}/posted/manifests/v1`)).status, 200);

    const nobody = [await post({ scope }), await post({ password: 'wrong', scope })];
    for (const answer of [...nobody, await anonymous.send('GET', `/v2/token?scope=${scope}`)]) {
      assert.deepEqual([answer.status, codesIn(answer)], [401, ['UNAUTHORIZED']]);
      assert.match(answer.headers['www-authenticate'] ?? '', /^Basic realm=/);
    }
    assert.equal((await post({ password: 'x'.repeat(100_000) })).status, 413);
  });

  test('scopes that make no sense give nothing, and no trouble', async () => {
    const { client, ask } = await somebody('owner');
    for (const scope of [
      '',
      'registry:catalog:*',
      'repository:',
      'repository:../x:pull',
      'repository:a"b:pull',
      '::::',
    ]) {
      const { token } = await ask(scope);
      assert.deepEqual(claimsIn(token).scopes, []);
    }
    const many = Array.from({ length: 11 }, (_, i) => `scope=repository:a/b${i}:pull`).join('&');
    assert.equal((await client.send('GET', `/v2/token?${many}`)).status, 400);
  });
});

for (const database of databases.slice(0, 1)) {
  let now = Date.now();
  const bench = benchOn(database, { clock: () => now });

  test('a registry token ends after five minutes, whatever the one that bought it', async () => {
    const client = bench.as(basic(bench.server.token));
    const { body } = await client.send('GET', '/v2/token?service=here');
    const narrow = bench.as(`Bearer ${json(body).token}`);
    assert.equal((await narrow.send('GET', '/v2/')).status, 200);
    now += 5 * 60_000 + 2_000;
    const late = await narrow.send('GET', '/v2/');
    assert.equal(late.status, 401);
    assert.match(late.body.toString(), /expired/);
    assert.equal((await client.send('GET', '/v2/')).status, 200);
  });
}
