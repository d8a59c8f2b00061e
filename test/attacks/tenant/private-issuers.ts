import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Code } from '../../../src/base/errors.ts';
import { IdentitiesService } from '../../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { IdentityProvidersService } from '../../../src/contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { onEveryDatabaseAndWire } from '../../support/api-fixture.ts';
import { builtinRoleUid } from '../../support/callers.ts';
import { rejects } from '../../support/rejects.ts';
import { exactMatch, newIdentityProvider } from '../../support/tenants.ts';

const { createIdentity, updateIdentity } = IdentitiesService.method;
const { updateIdentityProvider } = IdentityProvidersService.method;

/** Addresses of the machine, of its network, and of the metadata service of clouds, in several notations. */
const PRIVATE = [
  'http://127.0.0.1:4000',
  'http://localhost',
  'https://localhost',
  'https://issuer.localhost',
  'https://10.0.0.1',
  'https://192.168.1.1/realm',
  'https://169.254.169.254',
  'https://[::1]',
  'https://[fd00::1]',
  'https://[::ffff:10.0.0.1]',
  'https://2130706433',
  'https://0x7f.1',
];
const PRIVATE_PATTERNS = ['https://10\\.0\\.0\\.1/.*', 'http://127.0.0.1:[0-9]+', 'https://localhost/.*'];

onEveryDatabaseAndWire('issuers at private addresses', (fixture) => {
  test('are refused when an identity or identity provider is created or changed', async () => {
    const parent = await fixture.newOrganization();
    const create = (value: object) =>
      fixture.api.call(createIdentity, {
        parent,
        identity: { name: 'private', relationship: { case: 'claimMatch', value } },
      });
    const { uid } = await create(exactMatch('https://issuer.example.com', 'x'));
    const provider = await newIdentityProvider(fixture.api, parent, 'https://issuer.example.com', 'client');
    for (const issuer of PRIVATE) {
      const error = await rejects(create(exactMatch(issuer, 'x')), Code.INVALID_ARGUMENT);
      assert.deepEqual(error.fields, ['claim_match.issuer'], issuer);
      await rejects(newIdentityProvider(fixture.api, parent, issuer, 'client'), Code.INVALID_ARGUMENT);
    }
    const [issuer = ''] = PRIVATE;
    const identity = { uid, relationship: { case: 'claimMatch' as const, value: exactMatch(issuer, 'x') } };
    await rejects(
      fixture.api.call(updateIdentity, { identity, updateMask: { paths: ['claim_match'] } }),
      Code.INVALID_ARGUMENT,
    );
    const configuration = { case: 'oidc', value: { issuer, clientId: 'client' } } as const;
    const identityProvider = { uid: provider, name: 'p p', defaultRole: builtinRoleUid('viewer'), configuration };
    await rejects(
      fixture.api.call(updateIdentityProvider, { identityProvider, updateMask: { paths: ['oidc.issuer'] } }),
      Code.INVALID_ARGUMENT,
    );
    for (const pattern of PRIVATE_PATTERNS) {
      const iss = { case: 'issuerPattern', value: pattern } as const;
      const error = await rejects(create({ ...exactMatch('', 'x'), iss }), Code.INVALID_ARGUMENT);
      assert.deepEqual(error.fields, ['claim_match.issuer_pattern'], pattern);
    }
  });
});
