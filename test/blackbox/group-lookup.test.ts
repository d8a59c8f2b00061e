import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code } from '../../src/base/errors.ts';
import { GroupsService, OrgKind } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentityProvidersService } from '../../src/contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { AccessRequestsService } from '../../src/contract/gen/wharfinger/access/v1/access_requests_pb.js';
import { accessRequests } from '../../src/domains/iam/joining/access-requests.ts';
import { find } from '../../src/resource/read.ts';
import { deleteOne, insert } from '../../src/resource/write.ts';
import { openStore } from '../../src/store/open.ts';
import { type ApiFixture, onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { builtinRoleUid, callerWithRole, registeredCaller } from '../support/callers.ts';
import { rejects } from '../support/rejects.ts';
import type { CallError } from '../support/wires.ts';

const { createGroup, deleteGroup, lookupGroup, requestGroupAccess, checkEligibility, updateGroup } =
  GroupsService.method;
const { createIdentityProvider, deleteIdentityProvider } = IdentityProvidersService.method;
const { createRoleBinding } = RoleBindingsService.method;
const { listAccessRequests, deleteAccessRequest } = AccessRequestsService.method;

const DAY = 24 * 60 * 60 * 1000;
let issuers = 0;

onEveryDatabaseAndWire('joining a group', (fixture) => {
  const newIssuer = () => `https://login-${++issuers}.example.com`;

  const newOrganization = async (verified = true): Promise<string> => {
    const group = { name: `joined ${++issuers}`, verified, kind: OrgKind.CUSTOMER };
    return (await fixture.api.call(createGroup, { group })).uid;
  };
  const newProvider = async (parent: string, issuer: string): Promise<string> => {
    const configuration = { case: 'oidc' as const, value: { issuer, clientId: 'wharf' } };
    const identityProvider = { name: 'login', defaultRole: builtinRoleUid('viewer'), configuration };
    return (await fixture.api.call(createIdentityProvider, { parent, identityProvider })).uid;
  };
  const newPerson = async (issuer: string) => {
    const { uid, token } = await registeredCaller(fixture.server, issuer);
    return { uid, api: fixture.as(await token()) };
  };
  const bind = (identityUid: string, role: string, parent: string) =>
    fixture.api.call(createRoleBinding, { parent, roleBinding: { identityUid, roleUid: builtinRoleUid(role) } });

  test('a person finds the organization whose identity provider has their issuer', async () => {
    const issuer = newIssuer();
    const org = await newOrganization();
    const provider = await newProvider(org, issuer);
    const alice = await newPerson(issuer);
    const { group } = await alice.api.call(lookupGroup);
    assert.equal(group?.uid, org);
    assert.equal(group?.verified, true);

    const newer = await newOrganization();
    await newProvider(newer, issuer);
    assert.equal((await alice.api.call(lookupGroup)).group?.uid, org);
    await fixture.api.call(deleteIdentityProvider, { uid: provider });
    assert.equal((await alice.api.call(lookupGroup)).group?.uid, newer);
  });

  test('the error of a lookup without result is the same for every reason', async () => {
    const issuer = newIssuer();
    const org = await newOrganization();
    await newProvider(org, issuer);
    const refusals: CallError[] = [];
    const findsNothing = async (api: ApiFixture['api']) =>
      refusals.push(await rejects(api.call(lookupGroup), Code.NOT_FOUND));

    await findsNothing((await newPerson(newIssuer())).api);
    await findsNothing(fixture.api);
    const machine = await callerWithRole(fixture.server, 'viewer', await fixture.newGroup());
    await findsNothing(fixture.as(await machine.token()));
    const member = await newPerson(issuer);
    await bind(
      member.uid,
      'viewer',
      (await fixture.api.call(createGroup, { parent: org, group: { name: 'team' } })).uid,
    );
    await findsNothing(member.api);
    const late = await newPerson(issuer);
    await fixture.api.call(updateGroup, { group: { uid: org, verified: false }, updateMask: { paths: ['verified'] } });
    await findsNothing(late.api);

    const [first, ...others] = refusals.map(withoutRequestId);
    for (const refusal of others) assert.deepEqual(refusal, first);
  });

  test('an access request is listed for owners, and can be made once a day', async () => {
    const issuer = newIssuer();
    const org = await newOrganization();
    await newProvider(org, issuer);
    const alice = await newPerson(issuer);
    const requestAccess = () => alice.api.call(requestGroupAccess, { groupUid: org });
    const pending = async () =>
      (await fixture.api.call(listAccessRequests, { uidp: { childrenOf: org } })).accessRequests;

    const attempts = await Promise.allSettled([requestAccess(), requestAccess(), requestAccess()]);
    assert.equal(attempts.filter(({ status }) => status === 'fulfilled').length, 1);
    await rejects(requestAccess(), Code.RESOURCE_EXHAUSTED);
    const [request, ...more] = await pending();
    assert.deepEqual(more, []);
    assert.ok(request);
    assert.match(request.uid, new RegExp(`^${org}/[0-9a-f]{16}$`));
    assert.equal(request.identityUid, alice.uid);
    assert.equal(request.identity?.issuer, issuer);
    assert.deepEqual(request.createTime, request.updateTime);

    await makeOlder(fixture, request.uid, DAY - 60_000);
    await rejects(requestAccess(), Code.RESOURCE_EXHAUSTED);
    await makeOlder(fixture, request.uid, DAY + 60_000);
    await requestAccess();
    const [again] = await pending();
    assert.equal(again?.uid, request.uid);
    assert.notDeepEqual(again?.createTime, again?.updateTime);
    await rejects(requestAccess(), Code.RESOURCE_EXHAUSTED);

    await fixture.api.call(deleteAccessRequest, { uid: request.uid });
    await requestAccess();
    await bind(alice.uid, 'viewer', org);
    const { accessRequests: seen } = await alice.api.call(listAccessRequests, {});
    assert.deepEqual(
      seen.map(({ identityUid }) => identityUid),
      [alice.uid],
    );
    await rejects(alice.api.call(deleteAccessRequest, { uid: seen[0]?.uid ?? '' }), Code.PERMISSION_DENIED);
  });

  test('an access request for a hidden group gets the error of a missing one', async () => {
    const issuer = newIssuer();
    const [org, hidden] = [await newOrganization(), await newOrganization()];
    await newProvider(org, issuer);
    const inside = await fixture.api.call(createGroup, { parent: org, group: { name: 'inside' } });
    const alice = await newPerson(issuer);
    const refusals: object[] = [];
    for (const groupUid of [hidden, inside.uid, `${org}/${'0'.repeat(16)}`, 'f'.repeat(40)]) {
      const error = await rejects(alice.api.call(requestGroupAccess, { groupUid }), Code.NOT_FOUND);
      refusals.push(JSON.parse(JSON.stringify(withoutRequestId(error)).replaceAll(groupUid, 'it')));
    }
    const [first, ...others] = refusals;
    for (const refusal of others) assert.deepEqual(refusal, first);
    assert.deepEqual((await fixture.api.call(listAccessRequests, { uidp: { descendantsOf: org } })).accessRequests, []);
  });

  test('a caller that can see a group can request access to it', async () => {
    const group = await fixture.newGroup();
    const viewer = fixture.as(await (await callerWithRole(fixture.server, 'viewer', group)).token());
    await viewer.call(requestGroupAccess, { groupUid: group });
    await rejects(viewer.call(requestGroupAccess, { groupUid: `${group}/${'0'.repeat(16)}` }), Code.NOT_FOUND);
    await rejects(viewer.call(requestGroupAccess, { groupUid: fixture.org }), Code.NOT_FOUND);
  });

  test('a group with an access request can be deleted', async () => {
    const group = await fixture.newGroup();
    await fixture.api.call(requestGroupAccess, { groupUid: group });
    await fixture.api.call(deleteGroup, { uid: group });
  });

  test('an invalid uid is refused', async () => {
    for (const groupUid of ['', 'nonsense', `${fixture.org}/`]) {
      const error = await rejects(fixture.api.call(requestGroupAccess, { groupUid }), Code.INVALID_ARGUMENT);
      assert.deepEqual(error.fields, ['group_uid']);
    }
    await rejects(fixture.api.call(requestGroupAccess, { groupUid: fixture.org }, {}), Code.UNAUTHENTICATED);
  });

  test('a caller is eligible if it may create an organization', async () => {
    const isEligible = async (api: ApiFixture['api']) => (await api.call(checkEligibility)).eligible;
    assert.equal(await isEligible(fixture.api), true);

    const alice = await newPerson(newIssuer());
    assert.equal(await isEligible(alice.api), false);
    await rejects(alice.api.call(createGroup, { group: { name: 'too early' } }), Code.PERMISSION_DENIED);
    const org = await newOrganization();
    await bind(alice.uid, 'owner', org);
    assert.equal(await isEligible(alice.api), true);
    await alice.api.call(createGroup, { group: { name: `of alice ${++issuers}` } });

    const machine = await callerWithRole(fixture.server, 'owner', org);
    assert.equal(await isEligible(fixture.as(await machine.token())), true);
    const viewer = await callerWithRole(fixture.server, 'viewer', org);
    assert.equal(await isEligible(fixture.as(await viewer.token())), false);
  });
});

/** The message and details of an error without the request id, which differs for each request. */
const withoutRequestId = ({ message, details }: CallError) => ({
  message,
  details: details.map((detail) => ({ ...detail, requestId: '' })),
});

/** Sets the age of an access request directly in the database. */
async function makeOlder(fixture: ApiFixture, uid: string, age: number): Promise<void> {
  const store = await openStore(fixture.server.dataLocation);
  try {
    await store.write(async (tx) => {
      const stored = await find(tx, accessRequests, uid);
      assert.ok(stored);
      const { parent, message } = stored;
      await deleteOne(tx, accessRequests, stored);
      await insert(tx, accessRequests, { uid: stored.uid, parent, message }, Date.now() - age);
    });
  } finally {
    await store.close();
  }
}
