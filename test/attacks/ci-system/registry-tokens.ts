import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code } from '../../../src/base/errors.ts';
import { GroupsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { ReposService } from '../../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { TagsService } from '../../../src/contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import { Registry } from '../../../src/contract/gen/platform/registry/v1/registry.platform_pb.js';
import { callerWithRole } from '../../support/callers.ts';
import { basicAuth, digestOf, pushImage } from '../../support/oci-client.ts';
import { onEveryDatabase } from '../../support/oci-fixture.ts';
import { rejects } from '../../support/rejects.ts';
import { wires } from '../../support/wires.ts';

// The attacker has a registry token for some repositories and wants to reach others, or the API.

const { listTags } = TagsService.method;
const { updateTag } = Registry.method;

onEveryDatabase('a registry token', (fixture) => {
  async function newTeamWithToken(scopesIn: (team: string) => readonly string[]) {
    const team = await fixture.newTeam();
    const caller = await callerWithRole(fixture.server, 'registry.push', team.uid);
    const query = scopesIn(team.name)
      .map((scope) => `&scope=${encodeURIComponent(scope)}`)
      .join('');
    const { body } = await fixture.as(basicAuth(await caller.token())).send('GET', `/v2/token?service=here${query}`);
    const { token } = JSON.parse(body.toString());
    return { team, token: token as string, client: fixture.as(`Bearer ${token}`) };
  }

  for (const wire of wires) {
    test(`is refused by the API over ${wire.name}`, async (t) => {
      const { team, token } = await newTeamWithToken((name) => [`repository:${name}/missing:pull,push`]);
      const [old, current] = [
        await pushImage(fixture.owner, `${team.name}/app`, 'old'),
        await pushImage(fixture.owner, `${team.name}/app`, 'latest'),
      ];
      const { tags } = await fixture.api.call(listTags, { uidp: { descendantsOf: team.uid } });
      const latest = tags.find(({ name }) => name === 'latest') ?? assert.fail();
      const api = wire.connect(fixture.server.url, token);
      t.after(() => api.close());
      for (const attack of [
        () => api.call(updateTag, { id: latest.uid, name: 'latest', digest: old.digest }),
        () => api.call(listTags, {}),
        () => api.call(ReposService.method.listRepos, {}),
        () => api.call(GroupsService.method.getGroup, { uid: team.uid }),
      ]) {
        const { message } = await rejects(attack(), Code.UNAUTHENTICATED);
        assert.match(message, /a registry token is valid at \/v2\/ only/);
      }
      const { headers } = await fixture.owner.send('HEAD', `/v2/${team.name}/app/manifests/latest`);
      assert.equal(headers['docker-content-digest'], current.digest);
    });
  }

  test('cannot be exchanged or renewed', async () => {
    const { token, client } = await newTeamWithToken((name) => [`repository:${name}/app:pull,push`]);
    const exchange = await fetch(`${fixture.server.url}/sts/exchange?aud=${fixture.server.url}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
    });
    assert.equal(exchange.status, 401);
    assert.equal((await client.send('GET', '/v2/token?service=here')).status, 401);
  });

  test('for two repositories gives each only its own actions', async () => {
    const { team, client } = await newTeamWithToken((name) => [
      `repository:${name}/mine:pull,push`,
      `repository:${name}/base:pull`,
    ]);
    for (const name of ['mine', 'base', 'other']) await pushImage(fixture.owner, `${team.name}/${name}`, 'v1');
    await pushImage(client, `${team.name}/mine`, 'v2');
    const status = async (verb: string, path: string) => (await client.send(verb, `/v2/${team.name}/${path}`)).status;
    assert.equal(await status('GET', 'base/manifests/v1'), 200);
    assert.equal(await status('POST', 'base/blobs/uploads/'), 401);
    assert.equal(await status('PUT', 'base/manifests/v1'), 401);
    assert.equal(await status('DELETE', 'mine/manifests/v1'), 401);
    assert.equal(await status('GET', 'other/manifests/v1'), 401);
  });

  test('for a repository that does not exist takes no blob from the others of its group', async () => {
    const { team, client } = await newTeamWithToken((name) => [`repository:${name}/missing:pull,push`]);
    const secret = Buffer.from('a layer that the token does not include');
    await fixture.owner.pushBlob(`${team.name}/other`, secret);
    const begin = await client.send('POST', `/v2/${team.name}/missing/blobs/uploads/?mount=${digestOf(secret)}`);
    assert.equal(begin.status, 202);
    assert.equal((await client.send('HEAD', `/v2/${team.name}/missing/blobs/${digestOf(secret)}`)).status, 404);
  });
});
