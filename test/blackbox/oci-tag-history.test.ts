import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openStore } from '../../src/store/open.ts';
import { callerWithRole } from '../support/callers.ts';
import { basicAuth, digestOf, errorCodesIn, pushImage } from '../support/oci-client.ts';
import { onEveryDatabase } from '../support/oci-fixture.ts';

const json = (body: Buffer) => JSON.parse(body.toString('utf8'));

interface HistoryRecord {
  readonly updateTimestamp: string;
  readonly digest: string;
}

onEveryDatabase('the history of a tag', (fixture) => {
  /** Creates a repository with a tag that was moved once, and a client with a registry token to pull it. */
  async function newRepository() {
    const team = await fixture.newTeam();
    const name = `${team.name}/app`;
    const first = await pushImage(fixture.owner, name, 'latest', `${name} first`);
    const second = await pushImage(fixture.owner, name, 'latest', `${name} second`);
    const password = await (await callerWithRole(fixture.server, 'registry.pull', team.uid)).token();
    const scope = `repository:${name}:pull`;
    const response = await fixture.as(basicAuth(password)).send('GET', `/token?scope=${scope}`);
    assert.equal(response.status, 200, response.body.toString());
    const client = fixture.as(`Bearer ${json(response.body).token}`);
    return { team, name, client, digests: [first, second].map(({ bytes }) => digestOf(bytes)) };
  }

  /** Sets the times of the images that a tag pointed to. */
  async function setTimes(digests: readonly string[], times: readonly string[]): Promise<void> {
    const store = await openStore(fixture.server.dataLocation);
    try {
      await store.write(async (tx) => {
        for (const [i, digest] of digests.entries()) {
          await tx.run('UPDATE tag_history SET changed = $2 WHERE digest = $1', digest, Date.parse(times[i] ?? ''));
        }
      });
    } finally {
      await store.close();
    }
  }

  test('it lists the images oldest first, within a time, for a registry token that may pull', async () => {
    const { name, client, digests } = await newRepository();
    const times = ['2026-01-01T00:00:00.250Z', '2026-02-01T00:00:00.000Z'];
    await setTimes(digests, times);
    const path = `/v2/${name}/_chainguard/history/latest`;
    const history = async (query = ''): Promise<HistoryRecord[]> => {
      const { status, body } = await client.send('GET', `${path}${query}`);
      assert.equal(status, 200, body.toString());
      return json(body).history;
    };
    const all = digests.map((digest, i) => ({ updateTimestamp: times[i], digest }));
    assert.deepEqual(await history(), all);
    for (const [query, expected] of [
      ['?start=2026-01-01T00:00:00.250Z', all],
      ['?start=2026-01-01T00:00:00.2500001Z', all.slice(1)],
      ['?start=2026-01-15T00:00:00%2B05:30', all.slice(1)],
      ['?start=2026-01-15T00:00:00+05:30', all.slice(1)],
      ['?end=2026-01-15T00:00:00Z', all.slice(0, 1)],
      ['?start=2026-01-01T00:00:00Z&end=2026-01-31T00:00:00Z', all.slice(0, 1)],
      ['?start=2027-01-01T00:00:00Z', []],
    ] as const) {
      assert.deepEqual(await history(query), expected, query);
    }
    for (const [query, message] of [
      ['?start=yesterday', /start must be an RFC 3339 time/],
      ['?end=2026-02-30T00:00:00Z', /end must be an RFC 3339 time/],
      ['?end=2026-02-03', /end must be an RFC 3339 time/],
      ['?start=2026-02-01T00:00:00Z&end=2026-01-01T00:00:00Z', /start must not be later than end/],
    ] as const) {
      const { status, body } = await client.send('GET', `${path}${query}`);
      assert.equal(status, 400, query);
      assert.match(json(body).errors[0].message, message);
    }
  });

  test('it keeps a deleted tag, and knows no tag that never was', async () => {
    const { name, client, digests } = await newRepository();
    const path = `/v2/${name}/_chainguard/history`;
    assert.equal((await fixture.owner.send('DELETE', `/v2/${name}/manifests/latest`)).status, 202);
    const { history } = json((await client.send('GET', `${path}/latest`)).body);
    assert.deepEqual(
      history.map(({ digest }: HistoryRecord) => digest),
      digests,
    );
    const unknown = await client.send('GET', `${path}/other`);
    assert.deepEqual([unknown.status, errorCodesIn(unknown)], [404, ['MANIFEST_UNKNOWN']]);
    const invalid = await client.send('GET', `${path}/-x`);
    assert.deepEqual([invalid.status, errorCodesIn(invalid)], [400, ['TAG_INVALID']]);
  });

  test('it requires access to the repository, and a token for it', async () => {
    const { name, client } = await newRepository();
    const other = await newRepository();
    const path = `/v2/${name}/_chainguard/history/latest`;
    const none = await fixture.as().send('GET', path);
    assert.equal(none.status, 401);
    assert.match(none.headers['www-authenticate'] ?? '', new RegExp(`scope="repository:${name}:pull"`));
    const wrong = await other.client.send('GET', path);
    assert.equal(wrong.status, 401);
    assert.match(wrong.headers['www-authenticate'] ?? '', /insufficient_scope/);
    const unseen = await (await fixture.withRole('owner', other.team.uid)).send('GET', path);
    assert.equal(unseen.status, 403);
    assert.equal((await client.send('POST', path)).status, 405);
  });

  test('it ends with the last 1,000 images', async () => {
    const { name, client, digests } = await newRepository();
    const store = await openStore(fixture.server.dataLocation);
    try {
      await store.write(async (tx) => {
        const target = await tx.get<{ repo: string }>(
          'SELECT repo FROM tag_history WHERE digest = $1',
          digests[0] ?? '',
        );
        const rows = Array.from({ length: 1001 }, (_, i) => `($1, 'many', $${2 + (i % 2)}, ${i}, '')`);
        const insert = `INSERT INTO tag_history (repo, name, digest, changed, actor) VALUES ${rows.join(', ')}`;
        await tx.run(insert, target?.repo ?? '', ...digests);
      });
    } finally {
      await store.close();
    }
    const { history } = json((await client.send('GET', `/v2/${name}/_chainguard/history/many`)).body);
    assert.deepEqual(
      [history.length, history[0].updateTimestamp, history.at(-1).updateTimestamp],
      [1000, '1970-01-01T00:00:00.001Z', '1970-01-01T00:00:01.000Z'],
    );
    const before = await client.send('GET', `/v2/${name}/_chainguard/history/many?end=1970-01-01T00:00:00.001Z`);
    assert.equal(json(before.body).history.length, 2);
  });
});

onEveryDatabase('registry tokens at /token', (fixture) => {
  test('are those of /v2/token', async () => {
    const team = await fixture.newTeam();
    const name = `${team.name}/app`;
    await pushImage(fixture.owner, name, 'v1');
    const password = await (await callerWithRole(fixture.server, 'registry.pull', team.uid)).token();
    const scope = `scope=repository:${name}:pull`;
    const byQuery = await fixture.as(basicAuth(password)).send('GET', `/token?${scope}`);
    const byForm = await fixture.as().send('POST', '/token', {
      body: new URLSearchParams(`grant_type=password&username=u&password=${password}&${scope}`).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    for (const { status, body } of [byQuery, byForm]) {
      assert.equal(status, 200, body.toString());
      const { token } = json(body);
      assert.equal((await fixture.as(`Bearer ${token}`).send('GET', `/v2/${name}/manifests/v1`)).status, 200);
      assert.equal((await fixture.as(`Bearer ${token}`).send('GET', `/iam/v2/groups/${team.uid}`)).status, 401);
    }
    const none = await fixture.as().send('GET', `/token?${scope}`);
    assert.equal(none.status, 401);
    assert.match(none.headers['www-authenticate'] ?? '', /^Basic /);
  });
});
