import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Package, purlOf, readPurl } from './purl.ts';

const pairs: readonly [purl: string, named: Package][] = [
  ['pkg:golang/golang.org/x/net@v0.17.0', { type: 'golang', name: 'golang.org/x/net', version: 'v0.17.0' }],
  ['pkg:npm/%40scope/left-pad@1.2.3', { type: 'npm', name: '@scope/left-pad', version: '1.2.3' }],
  ['pkg:maven/org.example/thing', { type: 'maven', name: 'org.example:thing' }],
  ['pkg:pypi/django@4.2', { type: 'pypi', name: 'django', version: '4.2' }],
  [
    'pkg:apk/wolfi/curl@8.5.0-r1?arch=x86_64',
    { type: 'apk', name: 'curl', version: '8.5.0-r1', architecture: 'x86_64' },
  ],
];

test('a package and its purl', () => {
  for (const [purl, named] of pairs) {
    assert.equal(purlOf(named), purl);
    assert.deepEqual(readPurl(purl), named);
  }
});

test('what is no purl is none', () => {
  for (const text of ['', 'curl', 'pkg:', 'pkg:apk', 'https://example.com', 'pkg:apk/a@%']) {
    assert.equal(readPurl(text), undefined, text);
  }
  assert.equal(purlOf({ type: 'no type', name: 'x' }), undefined);
  assert.equal(purlOf({ type: 'apk', name: '' }), undefined);
});
