import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { assertCheap } from './cpu-time.testing.ts';
import { matchesPattern, patternProblem } from './pattern.ts';

test('a pattern matches the whole text', () => {
  const wholes: [string, string][] = [
    ['foo', 'foo'],
    ['foo|bar', 'bar'],
    ['^foo$', 'foo'],
    ['repo:org/.*:ref:refs/heads/main', 'repo:org/a/b:ref:refs/heads/main'],
    ['(?i)FOO', 'foo'],
    ['\\d{3}', '123'],
  ];
  for (const [pattern, text] of wholes) {
    assert.ok(matchesPattern(pattern, text), pattern);
    for (const other of [`x${text}`, `${text}x`, `${text}\n`, `\n${text}`, `${text}\n${text}`, '']) {
      assert.ok(!matchesPattern(pattern, other), `${pattern} on ${JSON.stringify(other)}`);
    }
  }
  // The flag that lets ^ and $ match at line ends has no effect on this.
  assert.ok(!matchesPattern('(?m)^foo$', 'foo\nbar'));
});

test('a quoted text matches itself and nothing else', () => {
  const quote = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  fc.assert(
    fc.property(fc.string({ minLength: 1, maxLength: 40 }), fc.string({ maxLength: 40 }), (text, other) => {
      assert.equal(patternProblem(quote(text)), undefined);
      assert.ok(matchesPattern(quote(text), text));
      assert.equal(matchesPattern(quote(text), other), text === other);
    }),
  );
});

test('an invalid pattern has a reason and matches no text', () => {
  const wrong: Record<string, RegExp> = {
    '': /empty/,
    '[': /not an RE2 pattern: missing closing \]/,
    '(a': /not an RE2 pattern/,
    'a(?=b)': /not an RE2 pattern/,
    '(a)\\1': /not an RE2 pattern/,
    'a{1001}': /not an RE2 pattern/,
    '(a{100}){100}': /not an RE2 pattern/,
    '.{600}': /too complex/,
    ['a'.repeat(513)]: /at most 512 characters/,
  };
  for (const [pattern, reason] of Object.entries(wrong)) {
    assert.match(patternProblem(pattern) ?? '', reason);
    assert.ok(!matchesPattern(pattern, pattern));
  }
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'ab()[]{}*+?|\\^$.,0-9') }), fc.string(), (pattern, text) => {
      if (patternProblem(pattern) !== undefined) assert.ok(!matchesPattern(pattern, text));
    }),
  );
});

test('the time of a match is bounded', () => {
  const hostile = [
    '(a+)+$',
    '(a|aa)+$',
    '(?:.*a){160}',
    '(?:a?){160}a{160}',
    '(?:.{0,20}){12}x',
    '.*a.{200}',
    '(?:.?){240}',
  ];
  for (const pattern of hostile) {
    assert.equal(patternProblem(pattern), undefined, pattern);
    for (const text of [`${'a'.repeat(1023)}b`, 'ab='.repeat(341), 'é'.repeat(1024), 'a'.repeat(1e6)]) {
      assertCheap(() => matchesPattern(pattern, text), `${pattern} on ${text.length} characters`);
    }
  }
});
