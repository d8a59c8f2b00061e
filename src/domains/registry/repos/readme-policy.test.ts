import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readmeProblem } from './readme-policy.ts';
import { MAX_README } from './readme-size.ts';

const safe = [
  '',
  'plain text with < and & and "quotes"',
  '# Title\n\n*emphasis*, **strong**, ~~struck~~ and `code`',
  '```go\nfunc main() {}\n```\n\n    <script>in code it is text</script>\n',
  'Inline `<script>` is text too',
  '| a | b |\n|:--|--:|\n| 1 | 2 |',
  '- one\n- two\n  1. nested\n\n3. three',
  '> quoted\n\n---\n',
  '[link](https://example.com "title") [relative](docs/a.md#part) <https://example.com> <a@example.com>',
  '![picture](a.png) <img src="a.png" alt="x" width="10" height="20%">',
  '<!-- a comment with <script> in it -->',
  '<details open><summary>More</summary>\n\ntext\n\n</details>',
  '<div align="center"><h1 id="top">Title</h1><br><kbd>Ctrl</kbd><sup>2</sup></div>',
  '<a name="anchor"></a>',
];

for (const text of safe) {
  test(`accepts ${JSON.stringify(text.slice(0, 50))}`, () => {
    assert.equal(readmeProblem(text), undefined);
  });
}

const dangerous = [
  '<script>alert(1)</script>',
  '<SCRIPT SRC=//evil.example></SCRIPT>',
  '<img src=x onerror=alert(1)>',
  '<p onclick="x">',
  '<iframe src="https://example.com"></iframe>',
  '<object data="x"></object>',
  '<embed src="x">',
  '<style>body{display:none}</style>',
  '<p style="position:fixed">x</p>',
  '<link rel="stylesheet" href="x">',
  '<meta http-equiv="refresh" content="0">',
  '<base href="//evil.example/">',
  '<form action="x"><input></form>',
  '<svg><a href="javascript:x"></a></svg>',
  '<math><mi></mi></math>',
  '<template><p></p></template>',
  '<noscript>x</noscript>',
  '<body onload="x">',
  '<html onclick="x">',
  '<div class="x">',
  '<code class="language-go evil">',
  '<p id="a b">',
  '[x](javascript:alert(1))',
  '[x](JaVaScRiPt:alert(1))',
  '[x](vbscript:x)',
  '![x](data:text/html;base64,eA==)',
  '<a href="java\nscript:alert(1)">x</a>',
  '<a href=" &#106;avascript:x">x</a>',
  '[x]: javascript:alert(1)\n\n[x]',
  '<javascript:alert(1)>',
];

for (const text of dangerous) {
  test(`refuses ${JSON.stringify(text.slice(0, 50))}`, () => {
    assert.match(readmeProblem(text) ?? '', /must be Markdown without active content, but has the (element|attribute)/);
  });
}

test('accepts a README of the maximum length and refuses a longer one', () => {
  assert.equal(readmeProblem('a '.repeat(MAX_README / 2)), undefined);
  assert.match(readmeProblem('a'.repeat(MAX_README + 1)) ?? '', /at most/);
});

test('handles deep nesting', () => {
  assert.equal(readmeProblem('<div>'.repeat(10_000)), undefined);
  assert.equal(readmeProblem('> '.repeat(10_000)), undefined);
});
