import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code } from '../../src/base/errors.ts';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { TermsService } from '../../src/contract/gen/chainguard/platform/iam/v2/terms_pb.js';
import { PingService } from '../../src/contract/gen/chainguard/platform/ping/v2/ping_pb.js';
import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { Auth } from '../../src/contract/gen/platform/auth/v1/auth.platform_pb.js';
import { Groups } from '../../src/contract/gen/platform/iam/v1/group.platform_pb.js';
import { Terms } from '../../src/contract/gen/platform/iam/v1/terms.platform_pb.js';
import { SecurityTokenService } from '../../src/contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { builtinRoleUid, callerWithRole } from '../support/callers.ts';
import { sign } from '../support/issuer.ts';
import { ALLOW_TEST_ISSUERS, newPerson, newTestProvider } from '../support/people.ts';
import { rejects } from '../support/rejects.ts';
import { startServerOn } from '../support/server.ts';
import { type CallError, wires } from '../support/wires.ts';

const { getGroup, listGroups, createGroup, updateGroup } = GroupsService.method;
const { acceptTerms, listTermsAcceptances } = TermsService.method;
const { createRoleBinding } = RoleBindingsService.method;

const URL_OF_DPA = 'https://example.com/dpa';
const DENIED = /"DENIED".*you have not accepted sfdpa\.v1, skills-tos\.v1/;
const REQUIRED = ['sfdpa.v1', 'skills-tos.v1'];

const assertMissing = (error: CallError, type: string, ...ids: string[]): void => {
  const detail = error.detail('TermsNotAcceptedDetail');
  assert.equal(detail?.['@type'], `type.googleapis.com/${type}.TermsNotAcceptedDetail`);
  const missing = (detail?.missing ?? []) as { id: string; label: string; url?: string }[];
  assert.deepEqual(
    missing.map(({ id }) => id),
    ids,
  );
  for (const { id, label, url } of missing) {
    assert.ok(label);
    if (id === 'sfdpa.v1') assert.equal(url, URL_OF_DPA);
  }
};

onEveryDatabaseAndWire(
  'required terms',
  (fixture) => {
    test('a person gets nothing in the organization before it has accepted', async (t) => {
      const provider = await newTestProvider(fixture, t);
      const { group: uid } = provider;
      const { upstream, uid: person } = await newPerson(fixture, provider);
      const api = fixture.as(upstream);
      const V2 = 'chainguard.platform.iam.v2';

      for (const call of [
        () => api.call(getGroup, { uid }),
        () => api.call(listGroups, { uidp: { descendantsOf: uid } }),
        () => api.call(listGroups, {}),
        () => api.call(updateGroup, { group: { uid, description: 'x' } }),
        () => api.call(ReposService.method.listRepos, { uidp: { descendantsOf: uid } }),
        () => api.call(createGroup, { parent: uid, group: { name: 'inside' } }),
      ]) {
        assertMissing(await rejects(call(), Code.FAILED_PRECONDITION), V2, ...REQUIRED);
      }
      const beta = { token: upstream, id: 'chainguard.platform.iam.v2beta1.GroupsService/GetGroup' };
      assertMissing(await rejects(api.call(getGroup, { uid }, beta), Code.FAILED_PRECONDITION), V2, ...REQUIRED);
      const v1 = await rejects(
        api.call(Groups.method.list, { uidp: { descendantsOf: uid } }),
        Code.FAILED_PRECONDITION,
      );
      assertMissing(v1, 'chainguard.platform.iam', ...REQUIRED);

      // Logging in, validating, ping, and the terms themselves.
      const { token } = await api.call(SecurityTokenService.method.exchange, { aud: [fixture.server.url] });
      assert.equal((await fixture.as(token).call(Auth.method.validate, {})).subject, person);
      await api.call(PingService.method.ping, {});
      const acceptedDocuments = async () =>
        (await api.call(listTermsAcceptances, { group: uid })).termsAcceptances
          .filter(({ acceptedBy }) => acceptedBy === person)
          .map(({ docId }) => docId);
      assert.deepEqual(await acceptedDocuments(), []);

      // A viewer accepts for itself, at the organization, what is required, and nothing else.
      const accept = (group: string, ...documentIds: string[]) => api.call(acceptTerms, { group, documentIds });
      await rejects(accept(uid, 'guardener-tos.v1'), Code.PERMISSION_DENIED);
      await rejects(accept(uid, ...REQUIRED, 'guardener-tos.v1'), Code.PERMISSION_DENIED);
      await rejects(accept(await fixture.newGroup(uid), ...REQUIRED), Code.PERMISSION_DENIED);
      await accept(uid, 'sfdpa.v1');
      const left = await rejects(fixture.as(token).call(getGroup, { uid }), Code.FAILED_PRECONDITION);
      assertMissing(left, V2, 'skills-tos.v1');
      await api.call(Terms.method.listAccepted, { group: uid });
      await api.call(Terms.method.acceptTerms, { group: uid, documentIds: REQUIRED });
      // Repeated, as after a lost response.
      await accept(uid, ...REQUIRED);
      assert.deepEqual((await acceptedDocuments()).toSorted(), REQUIRED);
      for (const client of [api, fixture.as(token)]) await client.call(getGroup, { uid });
      await rejects(api.call(updateGroup, { group: { uid, description: 'x' } }), Code.PERMISSION_DENIED);

      // The next person has to accept too.
      const next = fixture.as((await newPerson(fixture, provider)).upstream);
      await rejects(next.call(getGroup, { uid }), Code.FAILED_PRECONDITION);
      await next.call(acceptTerms, { group: uid, documentIds: REQUIRED });
      await next.call(getGroup, { uid });
    });

    test('other organizations, machines and operators are not affected', async (t) => {
      const provider = await newTestProvider(fixture, t);
      const { subject, uid: identityUid } = await newPerson(fixture, provider);
      const name = `free ${provider.clientId} ${fixture.wire.toLowerCase()}`;
      const { uid: free } = await fixture.api.call(createGroup, { group: { name } });
      const roleBinding = { identityUid, roleUid: builtinRoleUid('owner') };
      await fixture.api.call(createRoleBinding, { parent: free, roleBinding });
      // A second server of the same database requires a document of one organization only.
      const second = await startServerOn(fixture.server.dataLocation, {
        env: {
          ...ALLOW_TEST_ISSUERS,
          WHARF_REQUIRED_TERMS: `${provider.group}=sfdpa.v1`,
        },
      });
      t.after(() => second.stop());
      const connect = (token: string) => {
        const client = wires.find((wire) => wire.name === fixture.wire)?.connect(second.url, token) ?? assert.fail();
        t.after(() => client.close());
        return client;
      };
      const now = Math.floor(Date.now() / 1000);
      const claims = { iss: provider.issuer, sub: subject, aud: [second.url], iat: now, exp: now + 600 };
      const api = connect(await sign(claims, provider.key));
      await api.call(getGroup, { uid: free });
      const { groups } = await api.call(listGroups, {});
      assert.deepEqual(
        groups.map(({ uid }) => uid),
        [free],
      );
      await rejects(api.call(getGroup, { uid: provider.group }), Code.FAILED_PRECONDITION);
      // A group that the person has no access to is refused as before.
      await rejects(api.call(getGroup, { uid: '0'.repeat(40) }), Code.PERMISSION_DENIED);
      await connect(fixture.server.token).call(getGroup, { uid: fixture.org });
      await fixture.api.call(getGroup, { uid: fixture.org });
      const machine = await callerWithRole(fixture.server, 'viewer', provider.group);
      await fixture.as(await machine.token()).call(getGroup, { uid: provider.group });
    });

    test('a restricted token cannot accept, and gets nothing before', async (t) => {
      const provider = await newTestProvider(fixture, t);
      const { upstream } = await newPerson(fixture, provider);
      const request = { aud: [fixture.server.url], cap: ['groups.list'] };
      const { token } = await fixture.as(upstream).call(SecurityTokenService.method.exchange, request);
      const api = fixture.as(token);
      await rejects(api.call(getGroup, { uid: provider.group }), Code.FAILED_PRECONDITION);
      const acceptance = { group: fixture.org, documentIds: REQUIRED };
      await rejects(api.call(acceptTerms, acceptance), Code.PERMISSION_DENIED);
    });

    test('pulls and pushes are denied before', async (t) => {
      const provider = await newTestProvider(fixture, t);
      const { upstream, uid: identityUid } = await newPerson(fixture, provider);
      const roleBinding = { identityUid, roleUid: builtinRoleUid('owner') };
      await fixture.api.call(createRoleBinding, { parent: fixture.org, roleBinding });
      const { name } = await fixture.api.call(getGroup, { uid: fixture.org });
      const repo = { name: `terms-${provider.clientId}-${fixture.wire.toLowerCase()}` };
      await fixture.api.call(ReposService.method.createRepo, { parent: fixture.org, repo });
      const request = async (method: string, path: string, token: string) => {
        const headers = { authorization: `Bearer ${token}` };
        const response = await fetch(`${fixture.server.url}/v2/${name}/${repo.name}/${path}`, { method, headers });
        return { status: response.status, body: await response.text() };
      };
      const { token } = await fixture.as(upstream).call(SecurityTokenService.method.exchange, {
        aud: [fixture.server.url],
      });
      for (const [method, path] of [
        ['GET', 'tags/list'],
        ['POST', 'blobs/uploads/'],
      ] as const) {
        const { status, body } = await request(method, path, token);
        assert.equal(status, 403, `${method} ${path}: ${body}`);
        assert.match(body, DENIED);
      }
      const basic = { authorization: `Basic ${btoa(`user:${token}`)}` };
      const requestToken = (scope: string) => fetch(`${fixture.server.url}/v2/token?${scope}`, { headers: basic });
      // As `docker login` does, and then a pull.
      assert.equal((await requestToken('')).status, 200);
      const refused = await requestToken(`scope=repository:${name}/${repo.name}:pull`);
      assert.equal(refused.status, 403);
      assert.match(await refused.text(), DENIED);
      await fixture.as(upstream).call(acceptTerms, { group: fixture.org, documentIds: REQUIRED });
      assert.equal((await request('GET', 'tags/list', token)).status, 200);
      assert.equal((await request('POST', 'blobs/uploads/', token)).status, 202);
    });
  },
  {
    env: {
      ...ALLOW_TEST_ISSUERS,
      WHARF_REQUIRED_TERMS: '*=sfdpa.v1+skills-tos.v1',
      WHARF_TERMS_URLS: `sfdpa.v1=${URL_OF_DPA}`,
    },
  },
);
