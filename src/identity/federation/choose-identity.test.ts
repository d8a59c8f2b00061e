import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { chooseIdentity, type MatchedIdentity } from './choose-identity.ts';

const uid = (digit: string) => digit.repeat(40);
const [A, B, C, PERSON] = [uid('a'), uid('b'), uid('c'), uid('f')];

let count = 0;
const inOrganization = (
  organization: string,
  specificity: MatchedIdentity['specificity'],
  created = 1,
): MatchedIdentity => ({ uid: `${organization}/${String(++count).padStart(16, '0')}`, created, specificity });
const person = (created = 1, ...organizations: string[]): MatchedIdentity => ({
  uid: PERSON,
  created,
  specificity: 'exact',
  organizations,
});

test('which identity a token means', () => {
  const [exactA, patternA, anyA] = [
    inOrganization(A, 'exact', 5),
    inOrganization(A, 'pattern', 4),
    inOrganization(A, 'any subject', 3),
  ];
  const [exactB, patternB, anyB] = [
    inOrganization(B, 'exact', 2),
    inOrganization(B, 'pattern', 1),
    inOrganization(B, 'any subject', 0),
  ];
  const newerExactA = inOrganization(A, 'exact', 9);
  const outsider = person(0);
  const member = person(6, A);
  const earlyMember = person(1, A);
  const refused = undefined;
  const table: [name: string, matches: MatchedIdentity[], addressed: string[], MatchedIdentity | undefined][] = [
    ['no identity', [], [A], refused],
    ['one identity', [patternA], [], patternA],
    ['one identity, another organization addressed', [patternA], [B], patternA],
    ['exact before pattern within an organization', [anyA, patternA, exactA], [], exactA],
    ['then the oldest', [newerExactA, exactA], [A], exactA],
    ['the addressed organization', [exactA, exactB], [A], exactA],
    ['the addressed organization, by a pattern', [patternA, exactB], [A], patternA],
    ['the addressed organization, by any subject', [anyA, exactB, patternB], [A], anyA],
    ['two addressed organizations', [exactA, exactB], [A, B], refused],
    ['two addressed organizations, one of which matches', [exactA, exactB], [A, C], exactA],
    ['another organization addressed', [exactA, exactB], [C], refused],
    ['exact and exact', [exactA, exactB], [], refused],
    ['pattern and exact', [patternA, exactB], [], refused],
    ['pattern and pattern', [patternA, patternB], [], refused],
    ['pattern and any subject', [patternA, anyB], [], refused],
    ['any subject and any subject', [anyA, anyB], [], refused],
    ['exact and any subject', [exactA, anyB], [], exactA],
    ['exact and pattern, and any subject', [exactA, patternA, anyB], [], exactA],
    ['exact, and pattern and any subject', [exactA, patternB, anyB], [], refused],
    ['a person and copies', [exactA, exactB, patternA, outsider], [], outsider],
    ['a person without a role in the addressed organization', [patternA, outsider], [A], patternA],
    ['a person without a role, and an organization without identity', [patternA, outsider], [C], outsider],
    ['a member and a pattern', [patternA, member], [A], member],
    ['a member and an older exact identity', [exactA, member], [A], exactA],
    ['a member and a newer exact identity', [exactA, earlyMember], [A], earlyMember],
    ['a person named by uid', [exactA, outsider], [PERSON], outsider],
  ];
  for (const [name, matches, addressed, expected] of table) {
    for (const order of [matches, matches.toReversed()]) {
      assert.equal(chooseIdentity(order, addressed)?.uid, expected?.uid, name);
    }
  }
});

const match = (organization: string): fc.Arbitrary<MatchedIdentity> =>
  fc.record({
    uid: fc.integer({ min: 0, max: 999 }).map((n) => `${organization}/${String(n).padStart(16, '0')}`),
    created: fc.integer({ min: 0, max: 5 }),
    specificity: fc.constantFrom('exact', 'pattern', 'any subject'),
  });

test('identities of another organization change nothing for requests that address one', () => {
  fc.assert(
    fc.property(fc.array(match(A), { minLength: 1 }), fc.array(match(B)), (own, others) => {
      assert.equal(chooseIdentity([...own, ...others], [A]), chooseIdentity(own, [A]));
    }),
  );
});

test('other requests act as another organization only when the own one accepts any subject', () => {
  fc.assert(
    fc.property(fc.array(match(A), { minLength: 1 }), fc.array(match(B)), (own, others) => {
      const chosen = chooseIdentity([...own, ...others], []);
      if (!chosen?.uid.startsWith(B)) return;
      assert.ok(own.every(({ specificity }) => specificity === 'any subject'));
    }),
  );
});

test('no identity of an organization changes what the token of a person means without an addressed organization', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(match(A), match(B))), (others) => {
      assert.equal(chooseIdentity([...others, person(9)], [])?.uid, PERSON);
    }),
  );
});
