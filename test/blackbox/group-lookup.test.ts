import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code } from '../../src/base/errors.ts';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentityProvidersService } from '../../src/contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import {
  type AccessRequest,
  AccessRequestsService,
} from '../../src/contract/gen/wharfinger/access/v1/access_requests_pb.js';
import { accessRequests } from '../../src/domains/iam/joining/access-requests.ts';
import { find } from '../../src/resource/read.ts';
import { deleteOne, insert } from '../../src/resource/write.ts';
import { openStore } from '../../src/store/open.ts';
import { builtinUid, callerWith, person } from '../support/callers.ts';
import { type Bench, everywhere } from '../support/every-database-and-wire.ts';
import { rejects } from '../support/rejects.ts';
import type { CallError } from '../support/wires.ts';

const { createGroup, deleteGroup, lookupGroup, requestGroupAccess, checkEligibility, updateGroup } =
  GroupsService.method;
const { createIdentityProvider, deleteIdentityProvider } = IdentityProvidersService.method;
const { createRoleBinding } = RoleBindingsService.method;
const { listAccessRequests, deleteAccessRequest } = AccessRequestsService.method;

const DAY = 24 * 60 * 60 * 1000;
let issuers = 0;

everywhere('joining a group', (bench) => {
  const newIssuer = () => `https://login-${++issuers}.example.com`;

  const newOrganization = async (verified = true): Promise<string> => {
    const group = { name: `joined ${++issuers}`, verified };
    return (await bench.api.call(createGroup, { group })).uid;
  };
  const newProvider = async (parent: string, issuer: string): Promise<string> => {
    const configuration = { case: 'oidc' as const, value: { issuer, clientId: 'wharf' } };
    const identityProvider = { name: 'login', defaultRole: builtinUid('viewer'), configuration };
    return (await bench.api.call(createIdentityProvider, { parent, identityProvider })).uid;
  };
  const newPerson = async (issuer: string) => {
    const { uid, token } = await person(bench.server, issuer);
    return { uid, api: bench.as(await token()) };
  };
  const bind = (identityUid: string, role: string, parent: string) =>
    bench.api.call(createRoleBinding, { parent, roleBinding: { identityUid, roleUid: builtinUid(role) } });

  test('people find the organization that logs in with their issuer', async () => {
    const issuer = newIssuer();
    const org = await newOrganization();
    const provider = await newProvider(org, issuer);
    const alice = await newPerson(issuer);
    const { group } = await alice.api.call(lookupGroup);
    assert.equal(group?.uid, org);
    assert.equal(group?.verified, true);

    const younger = await newOrganization();
    await newProvider(younger, issuer);
    assert.equal((await alice.api.call(lookupGroup)).group?.uid, org);
    await bench.api.call(deleteIdentityProvider, { uid: provider });
    assert.equal((await alice.api.call(lookupGroup)).group?.uid, younger);
  });

  test('every reason for finding nothing sounds the same', async () => {
    const issuer = newIssuer();
    const org = await newOrganization();
    await newProvider(org, issuer);
    const refusals: CallError[] = [];
    const findsNothing = async (api: Bench['api']) =>
      refusals.push(await rejects(api.call(lookupGroup), Code.NOT_FOUND));

    await findsNothing((await newPerson(newIssuer())).api);
    await findsNothing(bench.api);
    const machine = await callerWith(bench.server, 'viewer', await bench.newGroup());
    await findsNothing(bench.as(await machine.token()));
    const member = await newPerson(issuer);
    await bind(member.uid, 'viewer', (await bench.api.call(createGroup, { parent: org, group: { name: 'team' } })).uid);
    await findsNothing(member.api);
    const late = await newPerson(issuer);
    await bench.api.call(updateGroup, { group: { uid: org, verified: false }, updateMask: { paths: ['verified'] } });
    await findsNothing(late.api);
    // A team cannot speak for the organization around it.
    const [otherIssuer, other] = [newIssuer(), await newOrganization()];
    await newProvider((await bench.api.call(createGroup, { parent: other, group: { name: 'team' } })).uid, otherIssuer);
    await findsNothing((await newPerson(otherIssuer)).api);

    const [first, ...others] = refusals.map(withoutRequestId);
    for (const refusal of others) assert.deepEqual(refusal, first);
  });

  test('a request reaches the owners, once a day', async () => {
    const issuer = newIssuer();
    const org = await newOrganization();
    await newProvider(org, issuer);
    const alice = await newPerson(issuer);
    const ask = () => alice.api.call(requestGroupAccess, { groupUid: org });
    const pending = async () =>
      (await bench.api.call(listAccessRequests, { uidp: { childrenOf: org } })).accessRequests;

    const attempts = await Promise.allSettled([ask(), ask(), ask()]);
    assert.equal(attempts.filter(({ status }) => status === 'fulfilled').length, 1);
    await rejects(ask(), Code.RESOURCE_EXHAUSTED);
    const [request, ...more] = await pending();
    assert.deepEqual(more, []);
    assert.ok(request);
    assert.match(request.uid, new RegExp(`^${org}/[0-9a-f]{16}$`));
    assert.equal(request.identityUid, alice.uid);
    assert.equal(request.identity?.issuer, issuer);
    assert.deepEqual(request.createTime, request.updateTime);

    await makeOlder(bench, request.uid, DAY - 60_000);
    await rejects(ask(), Code.RESOURCE_EXHAUSTED);
    await makeOlder(bench, request.uid, DAY + 60_000);
    await ask();
    const [again] = await pending();
    assert.equal(again?.uid, request.uid);
    assert.notDeepEqual(again?.createTime, again?.updateTime);
    await rejects(ask(), Code.RESOURCE_EXHAUSTED);

    await bench.api.call(deleteAccessRequest, { uid: request.uid });
    await ask();
    await bind(alice.uid, 'viewer', org);
    const { accessRequests: seen } = await alice.api.call(listAccessRequests, {});
    assert.deepEqual(
      seen.map(({ identityUid }) => identityUid),
      [alice.uid],
    );
    await rejects(alice.api.call(deleteAccessRequest, { uid: seen[0]?.uid ?? '' }), Code.PERMISSION_DENIED);
  });

  test('a group that the caller may not know of is as good as none', async () => {
    const issuer = newIssuer();
    const [org, hidden] = [await newOrganization(), await newOrganization()];
    await newProvider(org, issuer);
    const inside = await bench.api.call(createGroup, { parent: org, group: { name: 'inside' } });
    const alice = await newPerson(issuer);
    const refusals: object[] = [];
    for (const groupUid of [hidden, inside.uid, `${org}/${'0'.repeat(16)}`, 'f'.repeat(40)]) {
      const error = await rejects(alice.api.call(requestGroupAccess, { groupUid }), Code.NOT_FOUND);
      refusals.push(JSON.parse(JSON.stringify(withoutRequestId(error)).replaceAll(groupUid, 'it')));
    }
    const [first, ...others] = refusals;
    for (const refusal of others) assert.deepEqual(refusal, first);
    assert.deepEqual((await bench.api.call(listAccessRequests, { uidp: { descendantsOf: org } })).accessRequests, []);
  });

  test('who sees a group may ask for more of it', async () => {
    const group = await bench.newGroup();
    const viewer = bench.as(await (await callerWith(bench.server, 'viewer', group)).token());
    await viewer.call(requestGroupAccess, { groupUid: group });
    await rejects(viewer.call(requestGroupAccess, { groupUid: `${group}/${'0'.repeat(16)}` }), Code.NOT_FOUND);
    await rejects(viewer.call(requestGroupAccess, { groupUid: bench.org }), Code.NOT_FOUND);
  });

  test('a request does not keep a group from being deleted', async () => {
    const group = await bench.newGroup();
    await bench.api.call(requestGroupAccess, { groupUid: group });
    await bench.api.call(deleteGroup, { uid: group });
  });

  test('a uid that is none is named', async () => {
    for (const groupUid of ['', 'nonsense', `${bench.org}/`]) {
      const error = await rejects(bench.api.call(requestGroupAccess, { groupUid }), Code.INVALID_ARGUMENT);
      assert.deepEqual(error.fields, ['group_uid']);
    }
    await rejects(bench.api.call(requestGroupAccess, { groupUid: bench.org }, {}), Code.UNAUTHENTICATED);
  });

  test('eligible is who may create an organization', async () => {
    const isEligible = async (api: Bench['api']) => (await api.call(checkEligibility)).eligible;
    assert.equal(await isEligible(bench.api), true);

    const alice = await newPerson(newIssuer());
    assert.equal(await isEligible(alice.api), false);
    await rejects(alice.api.call(createGroup, { group: { name: 'too early' } }), Code.PERMISSION_DENIED);
    const org = await newOrganization();
    await bind(alice.uid, 'owner', org);
    assert.equal(await isEligible(alice.api), true);
    await alice.api.call(createGroup, { group: { name: `of alice ${++issuers}` } });

    const machine = await callerWith(bench.server, 'owner', org);
    assert.equal(await isEligible(bench.as(await machine.token())), false);
  });
});

/** What a refusal says, but for the request id, which differs by nature. */
const withoutRequestId = ({ message, details }: CallError) => ({
  message,
  details: details.map((detail) => ({ ...detail, requestId: '' })),
});

/** Puts a request back in time, past the server. */
async function makeOlder(bench: Bench, uid: string, age: number): Promise<void> {
  const store = await openStore(bench.server.home);
  try {
    await store.write(async (tx) => {
      const stored = await find(tx, accessRequests, uid);
      assert.ok(stored);
      const { parent, message } = stored;
      await deleteOne(tx, accessRequests, stored);
      await insert(tx, accessRequests, { uid, parent, message: message as AccessRequest }, Date.now() - age);
    });
  } finally {
    await store.close();
  }
}
