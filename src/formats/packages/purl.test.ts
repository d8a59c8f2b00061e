import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatPurl, type PackageCoordinates, parsePurl } from './purl.ts';

const pairs: readonly [purl: string, coordinates: PackageCoordinates][] = [
  ['pkg:golang/golang.org/x/net@v0.17.0', { type: 'golang', name: 'golang.org/x/net', version: 'v0.17.0' }],
  ['pkg:npm/%40scope/left-pad@1.2.3', { type: 'npm', name: '@scope/left-pad', version: '1.2.3' }],
  ['pkg:maven/org.example/thing', { type: 'maven', name: 'org.example:thing' }],
  [
    'pkg:github/package-url/purl-spec@244fd47e07',
    { type: 'github', name: 'package-url/purl-spec', version: '244fd47e07' },
  ],
  ['pkg:docker/library/nginx@1.27', { type: 'docker', name: 'library/nginx', version: '1.27' }],
  ['pkg:pypi/django@4.2', { type: 'pypi', name: 'django', version: '4.2' }],
  [
    'pkg:apk/wolfi/curl@8.5.0-r1?arch=x86_64',
    { type: 'apk', name: 'curl', version: '8.5.0-r1', architecture: 'x86_64' },
  ],
];

test('purls are parsed and formatted', () => {
  for (const [purl, coordinates] of pairs) {
    assert.equal(formatPurl(coordinates), purl);
    assert.deepEqual(parsePurl(purl), coordinates);
  }
});

test('products with different namespaces have different names', () => {
  for (const type of ['github', 'bitbucket', 'docker', 'generic', 'hex', 'huggingface']) {
    assert.notEqual(parsePurl(`pkg:${type}/one/thing`)?.name, parsePurl(`pkg:${type}/other/thing`)?.name, type);
  }
});

test('version, name and architecture may have any characters', () => {
  const texts = fc
    .string({ unit: 'binary', minLength: 1, maxLength: 8 })
    .filter((text) => !/^[/\s.]|[/\s.]$/.test(text));
  const letters = fc.constantFrom('a', 'B', '@', '%', '?', '#', ':', '+', '~', ' ', 'é', '&', '=');
  const tricky = fc.array(letters, { minLength: 1, maxLength: 6 }).map((some) => `x${some.join('')}x`);
  // packageurl-js refuses a percent sign in a qualifier, also an encoded one.
  const plain = tricky.map((text) => text.replaceAll('%', ''));
  fc.assert(
    fc.property(fc.oneof(tricky, texts), tricky, plain, (version, name, architecture) => {
      const purl = formatPurl({ type: 'gem', name, version, architecture });
      assert.deepEqual(purl && parsePurl(purl), { type: 'gem', name, version, architecture });
    }),
    { seed: 5, numRuns: 150 },
  );
});

test('any text can be parsed', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.string().map((rest) => `pkg:npm/${rest}`),
      ),
      (text) => {
        const found = parsePurl(text);
        assert.ok(found === undefined || found.name !== '', text);
      },
    ),
    { seed: 5, numRuns: 2000 },
  );
});

test('texts and coordinates that are not purls', () => {
  for (const text of ['', 'curl', 'pkg:', 'pkg:apk', 'https://example.com', 'pkg:apk/a@%']) {
    assert.equal(parsePurl(text), undefined, text);
  }
  assert.equal(formatPurl({ type: 'no type', name: 'x' }), undefined);
  assert.equal(formatPurl({ type: 'apk', name: '' }), undefined);
});
