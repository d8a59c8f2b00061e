import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code } from '../../../src/base/errors.ts';
import { GroupsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService } from '../../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { IdentityProvidersService } from '../../../src/contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { RoleBindingsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { Auth } from '../../../src/contract/gen/platform/auth/v1/auth.platform_pb.js';
import { SecurityTokenService } from '../../../src/contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { IdentityProviderStatesService } from '../../../src/contract/gen/wharfinger/iam/v1/identity_provider_states_pb.js';
import { ServerIdentitiesService } from '../../../src/contract/gen/wharfinger/iam/v1/server_identities_pb.js';
import { onEveryDatabaseAndWire } from '../../support/api-fixture.ts';
import { builtinRoleUid, callerWithRole, registeredCaller } from '../../support/callers.ts';
import {
  ALLOW_TEST_ISSUERS,
  credentialsOf,
  newPerson,
  newTestProvider,
  type Person,
  registryStatus,
  type TestProvider,
} from '../../support/people.ts';
import { rejects } from '../../support/rejects.ts';

const { exchange, exchangeRefreshToken } = SecurityTokenService.method;
const { register, validate } = Auth.method;
const { getGroup } = GroupsService.method;
const { createRoleBinding } = RoleBindingsService.method;
const { deleteIdentityProvider, updateIdentityProvider } = IdentityProvidersService.method;
const { disableIdentityProvider, enableIdentityProvider } = IdentityProviderStatesService.method;
const { deleteServerIdentity, disableServerIdentity, enableServerIdentity, getServerIdentity, listServerIdentities } =
  ServerIdentitiesService.method;

onEveryDatabaseAndWire(
  'people whose access was taken away',
  (fixture) => {
    const aud = () => [fixture.server.url];

    /** Asserts that no credential of a person works any more, and that it cannot get another one. */
    async function assertShutOut(
      person: Person,
      provider: TestProvider,
      credentials: Awaited<ReturnType<typeof credentialsOf>>,
      message?: RegExp,
    ): Promise<void> {
      const check = ({ message: text }: Error) => message && assert.match(text, message);
      for (const token of credentials.bearerTokens) {
        await rejects(fixture.as(token).call(validate), Code.UNAUTHENTICATED, check);
        await rejects(fixture.as(token).call(exchange, { aud: aud() }), Code.UNAUTHENTICATED, check);
      }
      for (const token of credentials.refreshTokens) {
        await rejects(fixture.as(token).call(exchangeRefreshToken, { aud: aud() }), Code.UNAUTHENTICATED, check);
      }
      assert.equal(await registryStatus(fixture.server.url, credentials.registryToken), 401);
      const again = await provider.token(person.subject);
      await rejects(fixture.as(again).call(exchange, { aud: aud() }), Code.UNAUTHENTICATED, check);
      await fixture
        .as(again)
        .call(exchange, { aud: aud(), identityProvider: provider.uid })
        .then(
          () => assert.fail('a login through the identity provider succeeded'),
          ({ code }) => assert.ok(code === Code.UNAUTHENTICATED || code === Code.PERMISSION_DENIED),
        );
    }

    test('a disabled person is refused with every credential, and by the next request', async (t) => {
      const provider = await newTestProvider(fixture, t);
      const person = await newPerson(fixture, provider);
      const credentials = await credentialsOf(fixture, person, provider);
      for (const token of credentials.bearerTokens) await fixture.as(token).call(getGroup, { uid: provider.group });

      const disabled = await fixture.api.call(disableServerIdentity, { uid: person.uid });
      assert.equal(disabled.disabled, true);
      await assertShutOut(person, provider, credentials, /disabled; ask an operator of the server/);
      await rejects(
        fixture.as(await provider.token(person.subject)).call(register, {}),
        Code.UNAUTHENTICATED,
        ({ message }) => assert.match(message, /disabled; ask an operator/),
      );

      // After it is enabled, a new login succeeds. Tokens from before stay invalid, because they may have been stolen.
      await fixture.api.call(enableServerIdentity, { uid: person.uid });
      for (const token of credentials.bearerTokens.slice(1)) {
        await rejects(fixture.as(token).call(validate), Code.UNAUTHENTICATED);
      }
      const { token } = await fixture.as(await provider.token(person.subject)).call(exchange, { aud: aud() });
      await fixture.as(token).call(getGroup, { uid: provider.group });
    });

    test('a deleted person is refused with every credential', async (t) => {
      const provider = await newTestProvider(fixture, t);
      const person = await newPerson(fixture, provider);
      const credentials = await credentialsOf(fixture, person, provider);
      await fixture.api.call(deleteServerIdentity, { uid: person.uid });
      await rejects(fixture.api.call(getServerIdentity, { uid: person.uid }), Code.NOT_FOUND);
      await assertShutOut(person, provider, credentials);
    });

    for (const [how, end] of [
      ['deleted', (uid: string) => fixture.api.call(deleteIdentityProvider, { uid })],
      ['disabled', (uid: string) => fixture.api.call(disableIdentityProvider, { uid })],
    ] as const) {
      test(`the people of an identity provider that was ${how} are refused, however they logged in`, async (t) => {
        const provider = await newTestProvider(fixture, t);
        const person = await newPerson(fixture, provider);
        const credentials = await credentialsOf(fixture, person, provider);
        for (const token of credentials.bearerTokens) await fixture.as(token).call(getGroup, { uid: provider.group });
        await end(provider.uid);
        await assertShutOut(person, provider, credentials);
        await rejects(fixture.as(person.upstream).call(register, {}), Code.PERMISSION_DENIED);
        if (how === 'deleted') return;
        await fixture.api.call(enableIdentityProvider, { uid: provider.uid });
        for (const token of credentials.bearerTokens) await fixture.as(token).call(getGroup, { uid: provider.group });
      });
    }

    test('an identity provider of another group with the same issuer does not keep their access', async (t) => {
      const provider = await newTestProvider(fixture, t);
      const person = await newPerson(fixture, provider);
      const { bearerTokens } = await credentialsOf(fixture, person, provider);
      // An owner gave the person another role there too.
      const roleBinding = { identityUid: person.uid, roleUid: builtinRoleUid('editor') };
      await fixture.api.call(createRoleBinding, { parent: provider.group, roleBinding });
      const other = await newTestProvider(fixture, t, provider);
      await fixture.as(await other.token(person.subject)).call(register, {});
      for (const token of bearerTokens) await fixture.as(token).call(getGroup, { uid: provider.group });

      await fixture.api.call(deleteIdentityProvider, { uid: provider.uid });
      for (const token of [...bearerTokens, await other.token(person.subject)]) {
        const error = await fixture
          .as(token)
          .call(getGroup, { uid: provider.group })
          .then(
            () => assert.fail('the person still has access to the group of the deleted identity provider'),
            ({ code }) => code,
          );
        assert.ok(error === Code.UNAUTHENTICATED || error === Code.PERMISSION_DENIED);
      }
      await fixture.as(await other.token(person.subject)).call(getGroup, { uid: other.group });
    });

    test('the people of an identity provider whose issuer was changed are refused', async (t) => {
      const provider = await newTestProvider(fixture, t);
      const person = await newPerson(fixture, provider);
      const credentials = await credentialsOf(fixture, person, provider);
      await fixture.api.call(updateIdentityProvider, {
        identityProvider: {
          uid: provider.uid,
          configuration: { case: 'oidc', value: { issuer: 'https://elsewhere.test', clientId: 'x' } },
        },
        updateMask: { paths: ['oidc.issuer', 'oidc.client_id'] },
      });
      await assertShutOut(person, provider, credentials);
    });

    test('only operators see and change the identities of the server, and not their own', async (t) => {
      const provider = await newTestProvider(fixture, t);
      const { uid } = await newPerson(fixture, provider);
      const founder = await registeredCaller(fixture.server, 'https://issuer.test');
      const roleBinding = { identityUid: founder.uid, roleUid: builtinRoleUid('owner') };
      await fixture.api.call(createRoleBinding, { parent: fixture.org, roleBinding });
      const machine = await callerWithRole(fixture.server, 'operator', fixture.org);
      for (const token of [await founder.token(), await machine.token()]) {
        const client = fixture.as(token);
        for (const method of [disableServerIdentity, enableServerIdentity, deleteServerIdentity, getServerIdentity]) {
          await rejects(client.call(method, { uid }), Code.PERMISSION_DENIED);
        }
        await rejects(client.call(listServerIdentities), Code.PERMISSION_DENIED);
      }
      // An operator whose token is restricted to a group is no operator of the server.
      const { token } = await fixture.api.call(exchange, { aud: aud(), scopes: [provider.group] });
      await rejects(fixture.as(token).call(disableServerIdentity, { uid }), Code.PERMISSION_DENIED);

      const { subject: own } = await fixture.api.call(validate);
      for (const method of [disableServerIdentity, deleteServerIdentity]) {
        await rejects(fixture.api.call(method, { uid: own }), Code.FAILED_PRECONDITION);
      }
    });

    test('two operators cannot disable each other at the same time', async () => {
      const [first, second] = [await newOperator(), await newOperator()];
      const results = await Promise.allSettled([
        first.client.call(disableServerIdentity, { uid: second.uid }),
        second.client.call(disableServerIdentity, { uid: first.uid }),
      ]);
      assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1);
    });

    test('an operator deletes an identity of an organization at which it has no role', async () => {
      const founder = await registeredCaller(fixture.server, 'https://issuer.test');
      const ownerBinding = { identityUid: founder.uid, roleUid: builtinRoleUid('owner') };
      await fixture.api.call(createRoleBinding, { parent: fixture.org, roleBinding: ownerBinding });
      const tenant = fixture.as(await founder.token());
      const name = `tenant ${founder.uid.slice(0, 8)}`;
      const { uid: parent } = await tenant.call(GroupsService.method.createGroup, { group: { name } });
      const { uid } = await tenant.call(IdentitiesService.method.createIdentity, { parent, identity: { name } });
      const roleBinding = { identityUid: uid, roleUid: builtinRoleUid('owner') };
      await tenant.call(createRoleBinding, { parent, roleBinding });
      await rejects(fixture.api.call(getGroup, { uid: parent }), Code.PERMISSION_DENIED);
      await fixture.api.call(deleteServerIdentity, { uid });
      await rejects(fixture.api.call(getServerIdentity, { uid }), Code.NOT_FOUND);
    });

    async function newOperator() {
      const { uid, token } = await registeredCaller(fixture.server, 'https://issuer.test');
      const roleBinding = { identityUid: uid, roleUid: builtinRoleUid('operator') };
      await fixture.api.call(createRoleBinding, { parent: fixture.org, roleBinding });
      return { uid, client: fixture.as(await token()) };
    }

    test('an operator finds every identity, of people and of each organization', async (t) => {
      const provider = await newTestProvider(fixture, t);
      const person = await newPerson(fixture, provider);
      const { uid: organization } = await fixture.api.call(GroupsService.method.createGroup, {
        group: { name: `tenant ${Date.now()}` },
      });
      const machine = await callerWithRole(fixture.server, 'viewer', organization);
      const all = await listAll();
      const found = all.find(({ uid }) => uid === person.uid) ?? assert.fail();
      assert.deepEqual(
        [found.issuer, found.subject, found.group, found.disabled, found.identityProviders],
        [provider.issuer, person.subject, '', false, [provider.uid]],
      );
      assert.equal(all.find(({ uid }) => uid === machine.uid)?.group, organization);
      const people = await fixture.api.call(listServerIdentities, { uidp: { inRoot: true }, pageSize: 200 });
      assert.ok(people.serverIdentities.every(({ group }) => group === ''));
      const named = await fixture.api.call(listServerIdentities, { name: found.name });
      assert.deepEqual(named.serverIdentities, [found]);
      await rejects(fixture.api.call(getServerIdentity, { uid: 'x' }), Code.INVALID_ARGUMENT);
      // As a machine of the new organization is refused too, the operator needs no role there.
      await fixture.api.call(disableServerIdentity, { uid: machine.uid });
      await rejects(fixture.as(await machine.token()).call(validate), Code.UNAUTHENTICATED);
    });

    async function listAll() {
      const found = [];
      for (let pageToken = ''; ; ) {
        const page = await fixture.api.call(listServerIdentities, { pageSize: 3, pageToken });
        found.push(...page.serverIdentities);
        pageToken = page.nextPageToken;
        if (pageToken === '') {
          assert.equal(Number(page.totalCount), found.length);
          return found;
        }
      }
    }
  },
  { env: ALLOW_TEST_ISSUERS },
);
