import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const documents = globSync(['*.md', 'docs/*.md', '.github/**/*.md'], { cwd: root }).sort();

interface Line {
  readonly number: number;
  readonly text: string;
}

/** The lines of a document that are prose: neither code nor tables, nor written by the benchmarks. */
function prose(path: string): Line[] {
  let isCode = false;
  let isGenerated = false;
  return readFileSync(join(root, path), 'utf8')
    .split('\n')
    .map((text, index) => ({ number: index + 1, text }))
    .filter(({ text }) => {
      if (text.startsWith('```')) isCode = !isCode;
      if (text.startsWith('<!-- ')) isGenerated = text === '<!-- results -->';
      return !isCode && !isGenerated && !/^(?: {4}|\||```)/.test(text);
    });
}

/** The anchors of the headings of a document, as GitHub makes them. */
const anchorsIn = (path: string): string[] =>
  [...readFileSync(path, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );

for (const path of documents) {
  test(`${path} wraps at 100 characters`, () => {
    const long = prose(path).filter(({ text }) => [...text].length > 100 && text.trim().includes(' '));
    assert.deepEqual(
      long.map(({ number }) => `${path}:${number}`),
      [],
    );
  });

  test(`the links of ${path} lead somewhere`, () => {
    for (const { text, number } of prose(path)) {
      for (const [, target = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
        if (/^https?:/.test(target)) continue;
        const [file = '', anchor] = target.split('#', 2);
        const linked = file === '' ? join(root, path) : join(root, dirname(path), file);
        assert.ok(existsSync(linked), `${path}:${number} links to ${target}`);
        if (anchor !== undefined) assert.ok(anchorsIn(linked).includes(anchor), `${path}:${number} links to ${target}`);
      }
    }
  });

  test(`the files that ${path} names exist`, () => {
    const text = readFileSync(join(root, path), 'utf8');
    for (const [named] of text.matchAll(/\b(?:src|test|bench|tools|contract)\/[\w./-]+\.(?:ts|js|proto|sh)\b/g)) {
      assert.ok(existsSync(join(root, named)), `${path} names ${named}`);
    }
  });
}
