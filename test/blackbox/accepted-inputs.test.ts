import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DescMethodUnary, MessageInitShape } from '@bufbuild/protobuf';
import { generateKeyPair, SignJWT } from 'jose';
import { Code } from '../../src/base/errors.ts';
import { AccountAssociationsService } from '../../src/contract/gen/chainguard/platform/iam/v2/account_associations_pb.js';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import {
  IdentitiesService,
  type Identity_AWSIdentitySchema,
} from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { RoleBindingsService } from '../../src/contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { Auth } from '../../src/contract/gen/platform/auth/v1/auth.platform_pb.js';
import { Identities as EventIdentities } from '../../src/contract/gen/platform/events/v1/identities.platform_pb.js';
import { GroupAccountAssociations } from '../../src/contract/gen/platform/iam/v1/account_associations.platform_pb.js';
import { Identities } from '../../src/contract/gen/platform/iam/v1/identity.platform_pb.js';
import { SecurityTokenService } from '../../src/contract/gen/platform/oidc/v1/oidc.platform_pb.js';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { builtinRoleUid, callerWithRole } from '../support/callers.ts';
import { rejects } from '../support/rejects.ts';

const { createIdentity, getIdentity, updateIdentity } = IdentitiesService.method;

/** The id of a v2 method in v2, and in v2beta1. */
const idsOf = ({ parent, name }: DescMethodUnary): string[] =>
  [parent.typeName, parent.typeName.replace('.v2.', '.v2beta1.')].map((service) => `${service}/${name}`);

const ISSUER = 'https://odd.example.com';

/** Texts that clients send as keys, and that no token can be verified with. */
const ODD_KEYS = ['not a key set', '{}', '{"keys":[]}', '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n'];

let count = 0;

async function signedToken(subject: string, audience: string): Promise<string> {
  const { privateKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519' });
  const claims = new SignJWT().setProtectedHeader({ alg: 'EdDSA' }).setIssuer(ISSUER).setSubject(subject);
  return claims.setAudience(audience).setIssuedAt().setExpirationTime('1h').sign(privateKey);
}

onEveryDatabaseAndWire('inputs that look odd and do no harm', (fixture) => {
  /** Calls a method, and returns the response with its `warning` header. */
  async function callForWarning<M extends DescMethodUnary>(
    method: M,
    request: MessageInitShape<M['input']>,
    id?: string,
  ) {
    let warning: string | undefined;
    const response = await fixture.api.call(method, request, {
      token: fixture.server.token,
      ...(id !== undefined && { id }),
      onHeaders(headerOf) {
        warning = headerOf('warning');
      },
    });
    return { response, warning };
  }

  test('keys that are no key set are stored as given, with a warning, and authenticate nobody', async () => {
    const group = await fixture.newGroup();
    for (const [at, id] of idsOf(createIdentity).entries()) {
      for (const issuerKeys of ODD_KEYS) {
        const subject = `odd ${++count}`;
        const value = { issuer: ISSUER, subject, issuerKeys };
        const identity = { name: subject, relationship: { case: 'staticKeys' as const, value } };
        const made = await callForWarning(createIdentity, { parent: group, identity }, id);
        assert.match(made.warning ?? '', /^299 - "static_keys\.issuer_keys .*no token can authenticate this identity/);
        const read = await fixture.api.call(
          getIdentity,
          { uid: made.response.uid },
          { token: fixture.server.token, id: idsOf(getIdentity)[at] ?? assert.fail() },
        );
        assert.ok(read.relationship.case === 'staticKeys');
        assert.equal(read.relationship.value.issuerKeys, issuerKeys);

        await fixture.api.call(RoleBindingsService.method.createRoleBinding, {
          parent: group,
          roleBinding: { identityUid: read.uid, roleUid: builtinRoleUid('owner') },
        });
        const token = await signedToken(subject, fixture.server.url);
        await rejects(fixture.as(token).call(getIdentity, { uid: read.uid }), Code.UNAUTHENTICATED);
        await rejects(fixture.as(token).call(Auth.method.validate), Code.UNAUTHENTICATED);
        const exchange = { aud: [fixture.server.url], identity: read.uid };
        await rejects(fixture.as(token).call(SecurityTokenService.method.exchange, exchange), Code.UNAUTHENTICATED);
      }
    }
  });

  test('the same holds in v1, for both methods that create identities', async () => {
    const parentId = await fixture.newGroup();
    for (const issuerKeys of ODD_KEYS) {
      const keys = { issuer: ISSUER, subject: `odd ${++count}`, issuerKeys };
      const identity = { name: keys.subject, relationship: { case: 'static' as const, value: keys } };
      const made = await callForWarning(Identities.method.create, { parentId, identity });
      assert.match(made.warning ?? '', /no token can authenticate this identity/);
      const [read] = (await fixture.api.call(Identities.method.list, { id: made.response.id })).items;
      assert.ok(read?.relationship.case === 'static');
      assert.equal(read.relationship.value.issuerKeys, issuerKeys);
      const changed = await callForWarning(Identities.method.update, { ...read, description: 'changed' });
      assert.equal(changed.response.description, 'changed');

      const short = await callForWarning(EventIdentities.method.create, {
        ...keys,
        id: parentId,
        subject: `odd ${++count}`,
      });
      assert.match(short.warning ?? '', /no token can authenticate this identity/);
      assert.equal(short.response.issuerKeys, issuerKeys);
    }
  });

  test('an update warns when it changes the keys to odd ones, and not when it makes them usable', async () => {
    const caller = await callerWithRole(fixture.server, 'viewer', await fixture.newGroup());
    const { relationship } = await fixture.api.call(getIdentity, { uid: caller.uid });
    assert.ok(relationship.case === 'staticKeys');
    for (const id of idsOf(updateIdentity)) {
      const odd = { case: 'staticKeys' as const, value: { ...relationship.value, issuerKeys: 'later' } };
      const broken = await callForWarning(updateIdentity, { identity: { uid: caller.uid, relationship: odd } }, id);
      assert.match(broken.warning ?? '', /not a JSON Web Key Set/);
      const token: string = await caller.token();
      await rejects(fixture.as(token).call(getIdentity, { uid: caller.uid }), Code.UNAUTHENTICATED);
      const repaired: { warning: string | undefined } = await callForWarning(
        updateIdentity,
        { identity: { uid: caller.uid, relationship } },
        id,
      );
      assert.equal(repaired.warning, undefined);
      assert.equal((await fixture.as(token).call(getIdentity, { uid: caller.uid })).uid, caller.uid);
    }
  });

  test('an owner whose keys cannot be used does not count as an owner', async () => {
    const { api } = fixture;
    const { createRoleBinding, listRoleBindings, deleteRoleBinding } = RoleBindingsService.method;
    const { uid: parent } = await api.call(GroupsService.method.createGroup, { group: { name: `odd ${++count}` } });
    const value = { issuer: ISSUER, subject: `odd ${++count}`, issuerKeys: 'none' };
    const identity = { name: value.subject, relationship: { case: 'staticKeys' as const, value } };
    const { uid: identityUid } = await api.call(createIdentity, { parent, identity });
    const [founder] = (await api.call(listRoleBindings, { uidp: { childrenOf: parent } })).roleBindings;
    await api.call(createRoleBinding, { parent, roleBinding: { identityUid, roleUid: builtinRoleUid('owner') } });
    const refused = api.call(deleteRoleBinding, { uid: founder?.uid ?? assert.fail() });
    const error = await rejects(refused, Code.FAILED_PRECONDITION);
    assert.match(JSON.stringify(error.detail('PreconditionFailure')), /LAST_OWNER/);
  });

  test('any ARN and user id is stored, and the account must have 12 digits', async () => {
    const parent = await fixture.newGroup();
    type Aws = MessageInitShape<typeof Identity_AWSIdentitySchema>;
    const texts = ['', 'role/x', 'arn:aws:iam::999999999999:role/x', 'two\nlines', 'ü'.repeat(2000)];
    for (const id of idsOf(createIdentity)) {
      for (const text of texts) {
        const awsArn = { case: 'arn' as const, value: text };
        const awsUserId = { case: 'userId' as const, value: text };
        const value: Aws = { awsAccount: '123456789012', awsArn, awsUserId };
        const identity = { name: 'aws', relationship: { case: 'awsIdentity' as const, value } };
        const made = await fixture.api.call(createIdentity, { parent, identity }, { token: fixture.server.token, id });
        const { relationship } = await fixture.api.call(getIdentity, { uid: made.uid });
        assert.ok(relationship.case === 'awsIdentity');
        assert.deepEqual([relationship.value.awsArn, relationship.value.awsUserId], [awsArn, awsUserId]);
        const [v1] = (await fixture.api.call(Identities.method.list, { id: made.uid })).items;
        const again = await fixture.api.call(Identities.method.create, {
          parentId: parent,
          identity: v1 ?? assert.fail(),
        });
        assert.deepEqual(again.relationship, v1?.relationship);
        const wrong = { case: 'awsIdentity' as const, value: { ...value, awsAccount: '12345678901x' } };
        const refused = fixture.api.call(createIdentity, { parent, identity: { name: 'aws', relationship: wrong } });
        assert.deepEqual((await rejects(refused, Code.INVALID_ARGUMENT)).fields, ['aws_identity.aws_account']);
      }
    }
  });

  test('any project id and number is stored', async () => {
    const { createAccountAssociation, getAccountAssociation, updateAccountAssociation } =
      AccountAssociationsService.method;
    const google = { projectId: 'My Project!', projectNumber: 'one\ntwo' };
    for (const id of idsOf(createAccountAssociation)) {
      const parent = await fixture.newGroup();
      const options = { token: fixture.server.token, id };
      await fixture.api.call(
        createAccountAssociation,
        { parent, accountAssociation: { name: 'odd', google } },
        options,
      );
      const read = async () => {
        const { projectId, projectNumber } =
          (await fixture.api.call(getAccountAssociation, { uid: parent })).google ?? assert.fail();
        return { projectId, projectNumber };
      };
      assert.deepEqual(await read(), google);
      const changed = { projectId: 'example.com:X', projectNumber: '-1' };
      await fixture.api.call(updateAccountAssociation, { accountAssociation: { uid: parent, google: changed } });
      assert.deepEqual(await read(), changed);
      const { method } = GroupAccountAssociations;
      const v1 = await fixture.api.call(method.update, { group: parent, name: 'odd', google });
      assert.deepEqual([v1.google?.projectId, v1.google?.projectNumber], [google.projectId, google.projectNumber]);
      const other = await fixture.newGroup();
      await fixture.api.call(method.create, { group: other, name: 'odd', google });
      const [listed] = (await fixture.api.call(method.list, { group: other })).items;
      assert.equal(listed?.google?.projectId, google.projectId);
    }
  });
});
