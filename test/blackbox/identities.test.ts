import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { before, test } from 'node:test';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { exportJWK, generateKeyPair } from 'jose';
import { Code } from '../../src/base/errors.ts';
import {
  IdentitiesService,
  type IdentitySchema,
  RelationshipType,
  ServicePrincipal,
} from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { builtinRoleUid, callerWithRole } from '../support/callers.ts';
import { rejects } from '../support/rejects.ts';

type NewIdentity = MessageInitShape<typeof IdentitySchema>;
type Relationship = NonNullable<NewIdentity['relationship']>;

const { createIdentity, getIdentity, listIdentities, updateIdentity, deleteIdentity } = IdentitiesService.method;
const { createRoleBinding, getRoleBinding, listRoleBindings } = RoleBindingsService.method;

const DAY = 24 * 60 * 60 * 1000;

const claimMatch = (subject: string): Relationship => ({
  case: 'claimMatch',
  value: {
    iss: { case: 'issuer', value: 'https://token.actions.example.com' },
    sub: { case: 'subject', value: subject },
  },
});

const { publicKey, privateKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true });
const publicKeys = JSON.stringify({ keys: [await exportJWK(publicKey)] });
const privateKeys = JSON.stringify({ keys: [await exportJWK(privateKey)] });

onEveryDatabaseAndWire('identities', (fixture) => {
  let group: string;
  before(async () => {
    group = await fixture.newGroup();
  });

  const make = (identity: NewIdentity, parent = group) => fixture.api.call(createIdentity, { parent, identity });

  test('a created identity can be read, listed, changed and deleted', async () => {
    const { api } = fixture;
    const relationship = claimMatch('repo:acme/life:ref:refs/heads/main');
    const identity = await make({ name: 'life', description: 'first', company: 'Acme & Söhne', relationship });
    assert.match(identity.uid, new RegExp(`^${group}/[0-9a-f]{16}$`));
    assert.ok(identity.createTime);
    assert.deepEqual(identity.updateTime, identity.createTime);
    assert.deepEqual(identity.lastSeenTime, identity.createTime);
    assert.equal(identity.relationship.case, 'claimMatch');
    const { lastSeenTime: _, ...unseen } = identity;
    assert.deepEqual(await api.call(getIdentity, { uid: identity.uid }), unseen, 'it has never called');
    assert.deepEqual((await api.call(listIdentities, { name: 'life', uidp: { childrenOf: group } })).identities, [
      unseen,
    ]);

    const changed = await api.call(updateIdentity, {
      identity: { uid: identity.uid, name: 'new life', description: 'not in the mask' },
      updateMask: { paths: ['name'] },
    });
    assert.equal(changed.name, 'new life');
    assert.equal(changed.description, 'first');
    assert.deepEqual(changed.relationship, identity.relationship);
    assert.deepEqual(changed.createTime, identity.createTime);
    assert.deepEqual(await api.call(getIdentity, { uid: identity.uid }), changed);

    await api.call(deleteIdentity, { uid: identity.uid });
    const error = await rejects(api.call(getIdentity, { uid: identity.uid }), Code.NOT_FOUND);
    assert.equal(error.detail('ResourceInfo')?.resourceName, identity.uid);
    await rejects(api.call(deleteIdentity, { uid: identity.uid }), Code.NOT_FOUND);
    await rejects(api.call(updateIdentity, { identity: { uid: identity.uid, name: 'x' } }), Code.NOT_FOUND);
  });

  test('an empty body and an invalid name are refused with the field name', async () => {
    for (const name of ['', 'Upper', 'sl/ash', 'ümlaut', 'tab\t', 'x'.repeat(2049)]) {
      const error = await rejects(make({ name }), Code.INVALID_ARGUMENT);
      assert.deepEqual(error.fields, ['name']);
      assert.match(error.message, /^Invalid argument: name: /);
      assert.equal(error.detail('ErrorInfo')?.reason, 'INVALID_ARGUMENT');
    }
    assert.equal((await make({ name: 'x' })).name, 'x');
  });

  test('a name can be as long as other texts, and lists can be ordered and filtered by it', async () => {
    const group = await fixture.newGroup();
    // Random, so that PostgreSQL cannot compress it in its index.
    const name = randomBytes(1024).toString('hex');
    const { uid } = await fixture.api.call(createIdentity, { parent: group, identity: { name } });
    await fixture.api.call(createIdentity, { parent: group, identity: { name: `g${name.slice(1)}` } });
    const list = async (request: object) =>
      fixture.api.call(IdentitiesService.method.listIdentities, { uidp: { descendantsOf: group }, ...request });
    assert.deepEqual(
      (await list({ name })).identities.map((identity) => identity.uid),
      [uid],
    );
    const first = await list({ orderBy: 'name', pageSize: 1 });
    assert.equal(first.identities[0]?.uid, uid);
    const next = await list({ orderBy: 'name', pageSize: 1, pageToken: first.nextPageToken });
    assert.equal(next.identities[0]?.name, `g${name.slice(1)}`);
  });

  test('output-only fields in requests are ignored', async () => {
    const identity = await make({
      name: 'echo',
      uid: 'mine',
      email: 'boss@example.com',
      lastSeenTime: timestampFromMs(0),
    });
    assert.equal(identity.email, '');
    assert.deepEqual(identity.lastSeenTime, identity.createTime);
    const changed = await fixture.api.call(updateIdentity, {
      identity: { uid: identity.uid, name: 'echo', email: 'boss@example.com' },
      updateMask: { paths: ['*'] },
    });
    assert.equal(changed.email, '');
    assert.equal(changed.lastSeenTime, undefined);
  });

  test('an identity can be created without a relationship and get one later', async () => {
    const { api } = fixture;
    const identity = await make({ name: 'later' });
    assert.equal(identity.relationship.case, undefined);
    const proven = await api.call(updateIdentity, {
      identity: { uid: identity.uid, relationship: claimMatch('later') },
    });
    assert.equal(proven.relationship.case, 'claimMatch');
    const replaced = await api.call(updateIdentity, {
      identity: {
        uid: identity.uid,
        relationship: { case: 'staticKeys', value: { issuer: 'i', subject: 's', issuerKeys: publicKeys } },
      },
    });
    assert.equal(replaced.relationship.case, 'staticKeys');
    const cleared = await api.call(updateIdentity, {
      identity: { uid: identity.uid, name: 'later' },
      updateMask: { paths: ['*'] },
    });
    assert.equal(cleared.relationship.case, undefined);
  });

  test('static keys expire after a year, by default and at most', async () => {
    const keys = (expirationTime?: number): Relationship => ({
      case: 'staticKeys',
      value: {
        issuer: 'https://issuer.test',
        subject: 'machine',
        issuerKeys: publicKeys,
        ...(expirationTime !== undefined && { expirationTime: timestampFromMs(expirationTime) }),
      },
    });
    const { createTime, relationship } = await make({ name: 'a year', relationship: keys() });
    assert.ok(createTime && relationship.case === 'staticKeys' && relationship.value.expirationTime);
    assert.equal(timestampMs(relationship.value.expirationTime) - timestampMs(createTime), 365 * DAY);
    for (const time of [Date.now() - 1000, Date.now() + 366 * DAY]) {
      const error = await rejects(make({ name: 'no', relationship: keys(time) }), Code.INVALID_ARGUMENT);
      assert.deepEqual(error.fields, ['static_keys.expiration_time']);
    }
  });

  test('validation errors name the invalid field of a relationship', async () => {
    const bad = async (relationship: Relationship, ...fields: string[]) => {
      const error = await rejects(make({ name: 'bad', relationship }), Code.INVALID_ARGUMENT);
      assert.deepEqual(error.fields, fields);
    };
    const iss = { case: 'issuer', value: 'https://issuer.test' } as const;
    const sub = { case: 'subject', value: 'me' } as const;
    await bad({ case: 'claimMatch', value: {} }, 'claim_match.issuer', 'claim_match.subject');
    await bad({ case: 'claimMatch', value: { iss } }, 'claim_match.subject');
    await bad(
      { case: 'claimMatch', value: { iss: { case: 'issuer', value: 'not a url' }, sub } },
      'claim_match.issuer',
    );
    const unclosed = { case: 'subjectPattern', value: '(' } as const;
    await bad({ case: 'claimMatch', value: { iss, sub: unclosed } }, 'claim_match.subject_pattern');
    const value = { issuer: 'i', subject: 's', issuerKeys: publicKeys };
    await bad({ case: 'staticKeys', value: { ...value, issuer: '' } }, 'static_keys.issuer');
    await bad({ case: 'staticKeys', value: { ...value, issuerKeys: '' } }, 'static_keys.issuer_keys');
    await bad({ case: 'staticKeys', value: { ...value, issuerKeys: privateKeys } }, 'static_keys.issuer_keys');
    await bad({ case: 'awsIdentity', value: { awsAccount: '12345' } }, 'aws_identity.aws_account');
    const awsAccount = '123456789012';
    const long = { case: 'arn', value: 'a'.repeat(4097) } as const;
    await bad({ case: 'awsIdentity', value: { awsAccount, awsArn: long } }, 'aws_identity.arn');
    const pattern = { case: 'arnPattern', value: '[' } as const;
    await bad({ case: 'awsIdentity', value: { awsAccount, awsArn: pattern } }, 'aws_identity.arn_pattern');
    await bad({ case: 'servicePrincipal', value: ServicePrincipal.UNSPECIFIED }, 'service_principal');
    await bad({ case: 'servicePrincipal', value: 99 as ServicePrincipal }, 'service_principal');

    // An update that changes the relationship is validated like a create.
    const { uid } = await make({ name: 'good', relationship: claimMatch('good') });
    const update = fixture.api.call(updateIdentity, {
      identity: { uid, relationship: { case: 'claimMatch', value: { sub: { case: 'subject', value: '' } } } },
      updateMask: { paths: ['claim_match.subject'] },
    });
    assert.deepEqual((await rejects(update, Code.INVALID_ARGUMENT)).fields, ['claim_match.subject']);
  });

  test('identities are filtered by name and by type of relationship', async () => {
    const { api } = fixture;
    const parent = await fixture.newGroup(group);
    const arn = { case: 'arn', value: 'arn:aws:iam::123456789012:role/ci' } as const;
    const made = [
      await make({ name: 'b', relationship: claimMatch('b') }, parent),
      await make({ name: 'a', relationship: claimMatch('a') }, parent),
      await make(
        { name: 'a', relationship: { case: 'awsIdentity', value: { awsAccount: '123456789012', awsArn: arn } } },
        parent,
      ),
      await make({ name: 'c', relationship: { case: 'servicePrincipal', value: ServicePrincipal.COSIGNED } }, parent),
      await make({ name: 'd' }, parent),
    ];
    const list = async (request: object) => {
      const page = await api.call(listIdentities, { orderBy: 'create_time', uidp: { childrenOf: parent }, ...request });
      assert.equal(page.totalCount, BigInt(page.identities.length));
      return page.identities.map(({ uid }) => made.findIndex((identity) => identity.uid === uid));
    };
    assert.deepEqual(await list({}), [0, 1, 2, 3, 4]);
    assert.deepEqual(await list({ name: 'a' }), [1, 2]);
    assert.deepEqual(await list({ relationshipType: RelationshipType.CLAIM_MATCH }), [0, 1]);
    assert.deepEqual(await list({ relationshipType: RelationshipType.CLAIM_MATCH, name: 'a' }), [1]);
    assert.deepEqual(await list({ relationshipType: RelationshipType.AWS_IDENTITY }), [2]);
    assert.deepEqual(await list({ relationshipType: RelationshipType.SERVICE_PRINCIPAL }), [3]);
    assert.deepEqual(await list({ relationshipType: RelationshipType.STATIC }), []);
    assert.deepEqual(await list({ orderBy: 'name desc, create_time' }), [4, 3, 0, 1, 2]);
    const order = { orderBy: 'name, create_time', uidp: { descendantsOf: parent }, pageSize: 2 };
    const seen: string[] = [];
    let pageToken = '';
    do {
      const page = await api.call(listIdentities, { ...order, pageToken });
      assert.equal(page.totalCount, 5n);
      seen.push(...page.identities.map(({ name }) => name));
      pageToken = page.nextPageToken;
    } while (pageToken !== '');
    assert.deepEqual(seen, ['a', 'a', 'b', 'c', 'd']);
  });

  test('a list contains only the identities in reach of the caller', async () => {
    const { as, server } = fixture;
    const [parent, sibling] = [await fixture.newGroup(group), await fixture.newGroup(group)];
    const hidden = await make({ name: 'hidden' }, sibling);
    const viewer = await callerWithRole(server, 'viewer', parent);
    const caller = as(await viewer.token());
    const { identities, totalCount } = await caller.call(listIdentities, {});
    assert.deepEqual(
      identities.map(({ uid }) => uid),
      [viewer.uid],
    );
    assert.equal(totalCount, 1n);
    assert.deepEqual((await caller.call(listIdentities, { uidp: { ids: [hidden.uid] } })).identities, []);
    await rejects(caller.call(getIdentity, { uid: hidden.uid }), Code.PERMISSION_DENIED);
    await rejects(caller.call(getIdentity, { uid: `${sibling}/${'0'.repeat(16)}` }), Code.PERMISSION_DENIED);
    const denied = caller.call(createIdentity, { parent, identity: { name: 'more' } });
    assert.match((await rejects(denied, Code.PERMISSION_DENIED)).message, /identity\.create/);
  });

  test('deleting an identity deletes its bindings in all groups and ends its login', async () => {
    const { api, as, server } = fixture;
    const parent = await fixture.newGroup(group);
    const below = await fixture.newGroup(parent);
    const machine = await callerWithRole(server, 'viewer', parent);
    const { uid: binding } = await api.call(createRoleBinding, {
      parent: below,
      roleBinding: { identityUid: machine.uid, roleUid: builtinRoleUid('editor') },
    });
    const caller = as(await machine.token());
    assert.equal((await caller.call(listIdentities, {})).identities.length, 1);
    await api.call(deleteIdentity, { uid: machine.uid });
    await rejects(caller.call(listIdentities, {}), Code.UNAUTHENTICATED);
    await rejects(api.call(getRoleBinding, { uid: binding }), Code.NOT_FOUND);
    assert.equal((await api.call(listRoleBindings, { identity: machine.uid })).totalCount, 0n);
  });

  test('two identities can have the same name and relationship', async () => {
    const relationship = claimMatch('somebody');
    const [one, other] = [await make({ name: 'twin', relationship }), await make({ name: 'twin', relationship })];
    assert.notEqual(one.uid, other.uid);
  });

  test('a parent must be a group that exists', async () => {
    const nowhere = `${group}/${'0'.repeat(16)}`;
    await rejects(make({ name: 'lost' }, nowhere), Code.NOT_FOUND);
    const { uid } = await make({ name: 'no group' });
    await rejects(make({ name: 'lost' }, uid), Code.NOT_FOUND);
    assert.deepEqual((await rejects(make({ name: 'lost' }, '/'), Code.INVALID_ARGUMENT)).fields, ['parent']);
    assert.deepEqual((await rejects(make({ name: 'lost' }, ''), Code.INVALID_ARGUMENT)).fields, ['parent']);
  });
});
