import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { issuerHostKeys, issuerPatternKeys, matchesIssuerPattern } from './issuer-pattern.ts';

test('a pattern is found by its literal host, or by the literal domain after its wildcards', () => {
  const keys: Record<string, string[]> = {
    'https://gitlab\\.example\\.com': ['gitlab.example.com'],
    '^https://gitlab.example.com/.*$': ['gitlab.example.com'],
    'https:\\/\\/GitLab\\.example\\.com\\/.*': ['gitlab.example.com'],
    'https://gitlab\\.example\\.com(/.*)?': ['gitlab.example.com'],
    'https://gitlab\\.example\\.com:8443/group': ['gitlab.example.com'],
    'http://127\\.0\\.0\\.1:[0-9]+': ['127.0.0.1'],
    'https?://localhost:[0-9]+/.*': ['localhost'],
    'https://[a-z]+\\.example\\.com': ['.example.com'],
    'https://[^/]+\\.example\\.com/x': ['.example.com'],
    'https://\\w+\\.example\\.com/x': ['.example.com'],
    'https://(dev|prod)\\.example\\.com/x': ['.example.com'],
    'https://team-[0-9]{1,3}\\.ci\\.example\\.com': ['.ci.example.com'],
    'https://oidc\\.eks\\.[a-z0-9-]+\\.amazonaws\\.com/id/[A-F0-9]+': ['.amazonaws.com'],
    'https://a\\.example\\.com|https://b\\.example\\.com/(x|y)': ['a.example.com', 'b.example.com'],
    '^(https://a\\.example\\.com|https://b\\.example\\.com)$': ['a.example.com', 'b.example.com'],
    'https://login\\.example\\.com/[0-9a-f-]{36}/v2\\.0': ['login.example.com'],
  };
  for (const [pattern, expected] of Object.entries(keys))
    assert.deepEqual(issuerPatternKeys(pattern), expected, pattern);
});

test('a pattern without a literal host is refused', () => {
  const refused = [
    '',
    '.*',
    '.+',
    '(?s).*',
    'https://.*',
    'https://.*example\\.com.*',
    'https://.*example\\.com',
    'https://.*\\.example\\.com',
    'https://[^/]+/x',
    'https://[^/]+/?',
    'https://[^.]+\\.example\\.com',
    'https://[a-z]+example\\.com',
    'https://[a-z]+\\.com',
    'https://[a-z]+\\.co\\.uk',
    'https://[0-9]+\\.0\\.0\\.1',
    'https://[a-z.]+',
    'https://[a-z/]+\\.example\\.com',
    'https://example\\.com.*',
    'https://example\\.com[^/]*/x',
    'https://example\\.com?',
    'https://example\\.(com|org)',
    'https://(.*)\\.example\\.com',
    'https://(a|.*)\\.example\\.com',
    'https://a\\.example\\.com|.*',
    '(https://a\\.example\\.com)|https://.*',
    '(https://.*)?',
    'https?://.+',
    'a*',
    '.ttps://example\\.com',
    'https.://example\\.com',
    'https://user@example\\.com',
    'https://\\S+\\.example\\.com',
    Array.from({ length: 21 }, (_, at) => `https://a${at}\\.example\\.com`).join('|'),
  ];
  for (const pattern of refused) {
    assert.deepEqual(issuerPatternKeys(pattern), [], pattern);
    for (const issuer of ['https://example.com', 'https://a.example.com/x']) {
      assert.ok(!matchesIssuerPattern(pattern, issuer), pattern);
    }
  }
});

test('a match needs the literal host, whatever the wildcards of the pattern allow', () => {
  const cases: [pattern: string, issuer: string, isMatch: boolean][] = [
    ['https://[a-z]+\\.example\\.com', 'https://ci.example.com', true],
    ['https://[a-z]+\\.example\\.com', 'https://.example.com', false],
    ['https://gitlab.example.com/.*', 'https://gitlab.example.com/a', true],
    ['https://gitlab.example.com/.*', 'https://gitlab.example/com/a', false],
    ['https://a.io.example.com', 'https://a.io/example.com', false],
    ['https://example\\.com(/?.*)', 'https://example.com.attacker.org', false],
    ['https://example\\.com/?.*', 'https://example.com.attacker.org', false],
    ['https://example\\.com:?.*', 'https://example.com:pw@attacker.org', false],
    ['https://example\\.com/.*', 'https://example.com/a/../b', false],
    ['https://[^/]+\\.example\\.com', 'https://attacker.org?.example.com', false],
    ['https://[^/]+\\.example\\.com', 'https://attacker.org#.example.com', false],
    ['https://[^/]+\\.example\\.com', 'https://x@a.example.com', false],
    ['https://a\\.com\\.example\\.com|https://b\\.com/.*', 'https://b.com/x', true],
  ];
  for (const [pattern, issuer, isMatch] of cases) {
    assert.equal(matchesIssuerPattern(pattern, issuer), isMatch, `${pattern} on ${issuer}`);
  }
});

test('every issuer that a pattern matches is found by a key of the pattern', () => {
  const fragments = [
    'a',
    'b',
    '\\.',
    '.',
    '-',
    '[a-z]+',
    '[^/]*',
    '.*',
    '(a|b)',
    '/',
    '/.*',
    '|',
    '^',
    '$',
    'com',
    '?',
  ];
  const part = fc.constantFrom(...fragments, 'https://', '\\.example\\.com', 'example', ':[0-9]+', '\\d');
  const pattern = fc.array(part, { maxLength: 8 }).map((parts) => `https://${parts.join('')}`);
  const label = fc.constantFrom('a', 'b', 'ab', 'example', 'com', 'attacker');
  const issuer = fc
    .tuple(fc.array(label, { minLength: 1, maxLength: 5 }), fc.constantFrom('', '/', '/a', '/x.example.com', ':80/a'))
    .map(([labels, path]) => `https://${labels.join('.')}${path}`);
  fc.assert(
    fc.property(pattern, issuer, (text, url) => {
      if (!matchesIssuerPattern(text, url)) return;
      const found = issuerHostKeys(url);
      assert.ok(issuerPatternKeys(text).some((key) => found.includes(key)));
      assert.ok(!issuerPatternKeys(text).some((key) => /^\.?[^.]*$/.test(key) && key.startsWith('.')));
    }),
    { numRuns: 5000 },
  );
});
