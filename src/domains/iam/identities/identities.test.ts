import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { assertConsistent } from '../../../../test/support/consistency.ts';
import { databases, temporaryStore } from '../../../../test/support/databases.ts';
import { newUid, ROOT } from '../../../base/uid.ts';
import { IdentitySchema } from '../../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { find } from '../../../resource/read.ts';
import { deleteOne, insert, update } from '../../../resource/write.ts';
import { candidateUids, identities } from './identities.ts';
import { indexPatterns } from './index-patterns.ts';

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
    value: {
      iss: { case: 'issuerPattern', value: 'https://issuer\\.test(/.*)?' },
      sub: { case: 'subject', value: SUBJECT },
    },
  },
  'a domain pattern': {
    case: 'claimMatch',
    value: {
      iss: { case: 'issuerPattern', value: 'https://[a-z]+\\.google\\.com' },
      sub: { case: 'subject', value: SUBJECT },
    },
  },
  // Earlier versions accepted it.
  'a pattern without host': {
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
    assert.deepEqual(await candidates('https://elsewhere.test', SUBJECT), ['another issuer']);
    assert.deepEqual(await candidates('https://accounts.google.com', SUBJECT), ['a domain pattern', 'google']);
    assert.deepEqual(await candidates(`${ISSUER}/path`, 'x'), ['an issuer pattern']);
    assert.deepEqual(await candidates('not a URL', 'x'), []);
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

  test(`patterns that an earlier version stored under one value are indexed by their hosts on ${database.name}`, async (t) => {
    const store = await temporaryStore(database);
    t.after(() => store.close());
    const uids: Record<string, string> = {};
    await store.write(async (tx) => {
      for (const name of ['an issuer pattern', 'a subject pattern', 'a pattern without host', 'exact']) {
        const uid = newUid(ROOT);
        uids[name] = uid;
        const message = create(IdentitySchema, { name, relationship: relationships[name] ?? assert.fail() });
        await insert(tx, identities, { message, uid, parent: ROOT }, 0);
      }
      await tx.run(`DELETE FROM reference WHERE field IN ('pattern', 'with_pattern')`);
      for (const name of ['an issuer pattern', 'a pattern without host']) {
        await tx.run(
          'INSERT INTO reference (kind, field, value, uid) VALUES ($1, $2, $3, $4)',
          ...[identities.kind, 'pattern', '*', uids[name] ?? ''],
        );
      }
    });
    const warned: unknown[] = [];
    const log = { debug() {}, info() {}, warn: (fields: unknown) => void warned.push(fields), error() {} };
    for (let start = 0; start < 2; start++) await indexPatterns(store, log);
    const found = await candidateUids(store.reader, ISSUER, SUBJECT);
    assert.deepEqual(
      found.sort(),
      ['an issuer pattern', 'a subject pattern', 'exact'].map((name) => uids[name] ?? '').sort(),
    );
    assert.deepEqual(warned, [{ identity: uids['a pattern without host'], issuerPattern: 'https://.*' }]);
    await assertConsistent(store.reader);
  });
}
