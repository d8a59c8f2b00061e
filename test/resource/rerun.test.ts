import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { anonymousCaller } from '../../src/access/create-caller.ts';
import { newUid, ROOT } from '../../src/base/uid.ts';
import { GroupSchema } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import {
  CreateIdentityProviderRequestSchema,
  type IdentityProvider,
  IdentityProvidersService,
  UpdateIdentityProviderRequestSchema,
} from '../../src/contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { files, methodTable } from '../../src/contract/method-table.ts';
import { groups } from '../../src/domains/iam/groups/groups.ts';
import {
  identityProviderOperations,
  identityProviders,
} from '../../src/domains/iam/identity-providers/identity-providers.ts';
import { OWNER } from '../../src/domains/iam/roles/builtin-roles.ts';
import type { Caller } from '../../src/resource/caller.ts';
import { createPageTokens } from '../../src/resource/list/page-token.ts';
import type { WriteContext } from '../../src/resource/operation.ts';
import { find } from '../../src/resource/read.ts';
import { insert } from '../../src/resource/write.ts';
import type { Transaction } from '../../src/store/store.ts';
import { databases, temporaryStore } from '../support/databases.ts';

const allowedCaller: Caller = { ...anonymousCaller, can: () => true, lacks: () => 0n };
const [method = assert.fail()] = methodTable(files);
const contextOf = (db: Transaction): WriteContext => ({
  method,
  caller: allowedCaller,
  authorization: undefined,
  now: 0,
  db,
  unchanged() {},
  setHeader() {},
});

const operations = identityProviderOperations(
  { kinds: new Map(), pageTokens: createPageTokens(new Uint8Array(32)) },
  {
    seal: async (_tx, secret) => `sealed ${secret}`,
    publicUrl: 'https://wharf.example.com',
    allowPrivateIssuers: false,
  },
);
const operation = (name: string) => {
  const found = operations[`${IdentityProvidersService.typeName}/${name}`];
  return found?.mode === 'write' ? found : assert.fail();
};

for (const database of databases) {
  describe(`a write that is retried on ${database.name}`, () => {
    test('gets an unchanged request, including the fields that are moved to the private state', async () => {
      const store = await temporaryStore(database);
      const conflict = new Error('conflict');
      /** Runs the work once and rolls back, as after a conflict with another server, and then again. */
      const twice = async (work: (ctx: WriteContext) => unknown) => {
        const once = store.write(async (db) => {
          await work(contextOf(db));
          throw conflict;
        });
        await assert.rejects(once, conflict);
        return store.write((db) => work(contextOf(db)));
      };
      try {
        const parent = newUid(ROOT);
        const message = create(GroupSchema, { name: 'organization' });
        await store.write((db) => insert(db, groups, { message, uid: parent, parent: ROOT }, 0));
        const oidcConfiguration = (clientSecret: string) => ({
          case: 'oidc' as const,
          value: { issuer: 'https://login.example.com', clientId: 'wharf', clientSecret },
        });
        const createRequest = create(CreateIdentityProviderRequestSchema, {
          parent,
          identityProvider: { name: 'provider', defaultRole: OWNER.uid, configuration: oidcConfiguration('first') },
        });
        const { uid } = (await twice((ctx) =>
          operation('CreateIdentityProvider').run(ctx, createRequest, undefined),
        )) as IdentityProvider;
        const secret = async () => (await find(store.reader, identityProviders, uid))?.state?.clientSecret;
        assert.equal(await secret(), 'sealed first');

        const updateRequest = create(UpdateIdentityProviderRequestSchema, {
          identityProvider: { uid, configuration: oidcConfiguration('second') },
          updateMask: { paths: ['oidc'] },
        });
        await twice((ctx) => operation('UpdateIdentityProvider').run(ctx, updateRequest, undefined));
        assert.equal(await secret(), 'sealed second');
      } finally {
        await store.close();
      }
    });
  });
}
