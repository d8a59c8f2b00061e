import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { databases, temporaryStore } from '../../../../test/support/databases.ts';
import { newUid, ROOT } from '../../../base/uid.ts';
import { IdentitySchema } from '../../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { find } from '../../../resource/read.ts';
import { deleteOne, insert, update } from '../../../resource/write.ts';
import { candidateUids, identities } from './identities.ts';

type Relationship = NonNullable<MessageInitShape<typeof IdentitySchema>['relationship']>;

const ISSUER = 'https://issuer.test';
const SUBJECT = 'repo:acme/app';
const exact = (issuer: string, subject: string): Relationship => ({
  case: 'claimMatch',
  value: { iss: { case: 'issuer', value: issuer }, sub: { case: 'subject', value: subject } },
});
const relationships: Record<string, Relationship> = {
  exact: exact(ISSUER, SUBJECT),
  'another subject': exact(ISSUER, 'repo:other/app'),
  'another issuer': exact('https://elsewhere.test', SUBJECT),
  'a subject pattern': {
    case: 'claimMatch',
    value: { iss: { case: 'issuer', value: ISSUER }, sub: { case: 'subjectPattern', value: 'repo:.*' } },
  },
  'an issuer pattern': {
    case: 'claimMatch',
    value: { iss: { case: 'issuerPattern', value: 'https://.*' }, sub: { case: 'subject', value: SUBJECT } },
  },
  keys: { case: 'staticKeys', value: { issuer: ISSUER, subject: SUBJECT, issuerKeys: '{}' } },
  aws: { case: 'awsIdentity', value: { awsAccount: '123456789012' } },
  google: exact('accounts.google.com', SUBJECT),
  long: exact(ISSUER, '€'.repeat(1024)),
  none: { case: undefined },
};

for (const database of databases) {
  test(`the identities that a token may match are found by reference on ${database.name}`, async (t) => {
    const store = await temporaryStore(database);
    t.after(() => store.close());
    const names = new Map<string, string>();
    await store.write(async (tx) => {
      for (const [name, relationship] of Object.entries(relationships)) {
        const uid = newUid(ROOT);
        names.set(uid, name);
        const message = create(IdentitySchema, { name, relationship });
        await insert(tx, identities, { message, uid, parent: ROOT }, 0);
      }
    });
    const candidates = async (issuer: string, subject: string) =>
      (await candidateUids(store.reader, issuer, subject)).map((uid) => names.get(uid)).sort();

    assert.deepEqual(await candidates(ISSUER, SUBJECT), ['a subject pattern', 'an issuer pattern', 'exact', 'keys']);
    assert.deepEqual(await candidates(ISSUER, 'repo:acme/unknown'), ['a subject pattern', 'an issuer pattern']);
    assert.deepEqual(await candidates('https://elsewhere.test', SUBJECT), ['an issuer pattern', 'another issuer']);
    assert.deepEqual(await candidates('https://accounts.google.com', SUBJECT), ['an issuer pattern', 'google']);
    assert.deepEqual(await candidates(ISSUER, '€'.repeat(1024)), ['a subject pattern', 'an issuer pattern', 'long']);

    const uidOf = (name: string) => [...names].find(([, own]) => own === name)?.[0] ?? assert.fail(name);
    await store.write(async (tx) => {
      const stored = (await find(tx, identities, uidOf('exact'))) ?? assert.fail();
      const message = create(IdentitySchema, { relationship: exact('https://elsewhere.test', SUBJECT) });
      await update(tx, identities, stored, { message, state: undefined }, 1);
      await deleteOne(tx, identities, (await find(tx, identities, uidOf('an issuer pattern'))) ?? assert.fail());
    });
    assert.deepEqual(await candidates(ISSUER, SUBJECT), ['a subject pattern', 'keys']);
    assert.deepEqual(await candidates('https://elsewhere.test', SUBJECT), ['another issuer', 'exact']);
  });
}
