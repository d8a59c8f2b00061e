import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ApiError } from '../../base/errors.ts';
import { decodeUtf8, parseJson } from './parse.ts';
import { findSyntaxError } from './syntax-error.ts';

const errorMessage = (run: () => unknown): string => {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof ApiError);
    return error.message;
  }
  return 'none';
};

test('an empty text is undefined', () => {
  assert.equal(parseJson(''), undefined);
  assert.equal(parseJson(' \r\n\t'), undefined);
});

const invalidTexts: [string, string][] = [
  ['abc', 'a value at line 1, column 1'],
  ['{bad', 'a name in double quotes or } at line 1, column 2'],
  ["{'a': 1}", 'a name in double quotes or } at line 1, column 2'],
  ['[1,]', 'a value at line 1, column 4'],
  ['[,1]', 'a value or ] at line 1, column 2'],
  ['{"a":1,}', 'a name in double quotes at line 1, column 8'],
  ['{"a" 1}', 'a colon at line 1, column 6'],
  ['{\n  "a": tru\n}', 'a value at line 2, column 8'],
  ['{"a": 1 "b": 2}', 'a comma or } at line 1, column 9'],
  ['[1 2]', 'a comma or ] at line 1, column 4'],
  ['{"a": "b', 'a value at line 1, column 7'],
  ['{"a": "\\x"}', 'a value at line 1, column 7'],
  ['{"a": "tab\there"}', 'a value at line 1, column 7'],
  ['{} {}', 'the end at line 1, column 4'],
  ['[1', 'a comma or ] at line 1, column 3'],
  ['01', 'the end at line 1, column 2'],
  ['NaN', 'a value at line 1, column 1'],
  ['['.repeat(200_000), 'a value or ] at line 1, column 200001'],
];
for (const [text, expected] of invalidTexts) {
  test(`reports what is wrong with ${text.slice(0, 20)}`, () => {
    assert.equal(
      errorMessage(() => parseJson(text)),
      `Invalid argument: body: must be valid JSON; expected ${expected}`,
    );
  });
}

test('finds a syntax error exactly when JSON.parse fails', () => {
  const tokens = fc.array(
    fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ':',
      ',',
      '"a"',
      '"',
      '\\',
      '\\u00e9',
      '1',
      '-',
      '.5',
      'e3',
      'true',
      'nul',
      ' ',
      '\n',
      '\u0001',
    ),
    { maxLength: 12 },
  );
  const parses = (text: string) => {
    try {
      JSON.parse(text);
      return true;
    } catch {
      return false;
    }
  };
  fc.assert(
    fc.property(
      fc.oneof(
        fc.json(),
        tokens.map((parts) => parts.join('')),
      ),
      (text) => {
        assert.equal(findSyntaxError(text) === undefined, parses(text), JSON.stringify(text));
      },
    ),
    { seed: 1, numRuns: 5000 },
  );
});

test('text must be UTF-8; a byte order mark is removed', () => {
  assert.equal(decodeUtf8(new Uint8Array([0xef, 0xbb, 0xbf, 0x7b, 0x7d])), '{}');
  for (const bytes of [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0x80]]) {
    assert.equal(
      errorMessage(() => decodeUtf8(new Uint8Array(bytes))),
      'Invalid argument: body: must be valid UTF-8',
    );
  }
});
