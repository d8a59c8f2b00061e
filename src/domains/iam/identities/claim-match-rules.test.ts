import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { Identity_ClaimMatchSchema } from '../../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { claimMatchProblems } from './claim-match-rules.ts';

type Init = MessageInitShape<typeof Identity_ClaimMatchSchema>;

const valid = {
  iss: { case: 'issuer', value: 'https://issuer.example.com' },
  sub: { case: 'subject', value: 'alice' },
} as const satisfies Init;

const problems = (init: Init) => claimMatchProblems(create(Identity_ClaimMatchSchema, init));
const fields = (init: Init): string[] => problems(init).map(({ field }) => field);

test('valid claims', () => {
  const matches: Init[] = [
    valid,
    { ...valid, iss: { case: 'issuer', value: 'accounts.google.com' } },
    { ...valid, iss: { case: 'issuer', value: 'http://localhost:4000' } },
    {
      ...valid,
      iss: { case: 'issuerPattern', value: 'https://oidc\\.eks\\.[a-z0-9-]+\\.amazonaws\\.com/id/[A-F0-9]+' },
    },
    { ...valid, sub: { case: 'subjectPattern', value: 'repo:my-org/.*' } },
    { ...valid, sub: { case: 'subjectPattern', value: '.*' }, claims: { repository_owner: 'my-org' } },
    { ...valid, aud: { case: 'audience', value: 'sts.example.com' } },
    { ...valid, aud: { case: 'audiencePattern', value: '.*\\.example\\.com' } },
    { ...valid, claims: { email: 'a@example.com' }, claimPatterns: { ref: 'refs/heads/.*' } },
  ];
  for (const match of matches) assert.deepEqual(problems(match), []);
});

test('each violation names its field', () => {
  assert.deepEqual(fields({}), ['claim_match.issuer', 'claim_match.subject']);
  const wrong: [Init, string][] = [
    [{ iss: { case: 'issuer', value: '' } }, 'claim_match.issuer'],
    [{ iss: { case: 'issuer', value: 'http://issuer.example.com' } }, 'claim_match.issuer'],
    [{ iss: { case: 'issuer', value: 'https://issuer.example.com/a/../b' } }, 'claim_match.issuer'],
    [{ iss: { case: 'issuerPattern', value: '[' } }, 'claim_match.issuer_pattern'],
    [{ sub: { case: 'subject', value: '' } }, 'claim_match.subject'],
    [{ sub: { case: 'subject', value: 'x'.repeat(1025) } }, 'claim_match.subject'],
    [{ sub: { case: 'subjectPattern', value: '' } }, 'claim_match.subject_pattern'],
    [{ sub: { case: 'subjectPattern', value: '(a' } }, 'claim_match.subject_pattern'],
    [{ aud: { case: 'audience', value: '' } }, 'claim_match.audience'],
    [{ aud: { case: 'audiencePattern', value: 'a(?=b)' } }, 'claim_match.audience_pattern'],
    [{ claims: { email: '' } }, 'claim_match.claims[email]'],
    [{ claims: { '': 'x' } }, 'claim_match.claims'],
    [{ claims: { ['x'.repeat(257)]: 'x' } }, 'claim_match.claims'],
    [{ claimPatterns: { email: '*' } }, 'claim_match.claim_patterns[email]'],
    [
      { claimPatterns: Object.fromEntries(Array.from({ length: 21 }, (_, i) => [i, 'a'])) },
      'claim_match.claim_patterns',
    ],
  ];
  for (const [match, field] of wrong) assert.deepEqual(fields({ ...valid, ...match }), [field]);
});

test('an issuer pattern without a literal host is refused, with what is valid instead', () => {
  for (const value of ['.*', 'https://.*', 'https://[^/]+/x', 'https://.*example\\.com.*', '(https://.*)?', 'a*']) {
    const [problem] = problems({ ...valid, iss: { case: 'issuerPattern', value } });
    assert.equal(problem?.field, 'claim_match.issuer_pattern', value);
    assert.match(problem.description, /^must begin with https:\/\/ and a literal host/);
  }
});
