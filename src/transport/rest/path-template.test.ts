import assert from 'node:assert/strict';
import { test } from 'node:test';
import { capturesOf, compareSpecificity, matchesTemplate, parseTemplate } from './path-template.ts';

test('reads literals, variables and custom verbs', () => {
  assert.deepEqual(parseTemplate('/registry/v2/repos/{repo_uid=**}/digests/{digest}/size'), {
    segments: [
      { kind: 'literal', text: 'registry' },
      { kind: 'literal', text: 'v2' },
      { kind: 'literal', text: 'repos' },
      { kind: 'many', variable: 'repo_uid' },
      { kind: 'literal', text: 'digests' },
      { kind: 'one', variable: 'digest' },
      { kind: 'literal', text: 'size' },
    ],
    many: 3,
    variables: [
      { variable: 'repo_uid', at: 3 },
      { variable: 'digest', at: 5 },
    ],
    customVerb: undefined,
  });
  assert.deepEqual(parseTemplate('/a/{group.uid=*}:check'), {
    segments: [
      { kind: 'literal', text: 'a' },
      { kind: 'one', variable: 'group.uid' },
    ],
    many: -1,
    variables: [{ variable: 'group.uid', at: 1 }],
    customVerb: 'check',
  });
  assert.equal(parseTemplate('/a/b:check').customVerb, 'check');
});

for (const template of ['a/b', '/a//b', '/a/*', '/a/{x=b/*}', '/a/{x=**}/{y=**}', '/a/{x', '/a/b c', '/a/{}']) {
  test(`refuses ${template} at start`, () => {
    assert.throws(() => parseTemplate(template), /^Error: route /);
  });
}

const match = (template: string, path: string) => {
  const parsed = parseTemplate(template);
  const segments = path.slice(1).split('/');
  if (!matchesTemplate(parsed, segments)) return undefined;
  return capturesOf(parsed, segments).map(
    ({ variable, from, to }) => `${variable}=${segments.slice(from, to).join('/')}`,
  );
};

test('** matches any number of segments, also none', () => {
  assert.deepEqual(match('/g/{uid=**}', '/g'), ['uid=']);
  assert.deepEqual(match('/g/{uid=**}', '/g/'), ['uid=']);
  assert.deepEqual(match('/g/{uid=**}', '/g/a/b/c'), ['uid=a/b/c']);
  assert.deepEqual(match('/g/{uid=**}/readme', '/g/readme'), ['uid=']);
  assert.deepEqual(match('/g/{uid=**}/readme', '/g/a/b/readme'), ['uid=a/b']);
  assert.deepEqual(match('/g/{uid=**}/d/{digest}/size', '/g/a/b/d/x/size'), ['uid=a/b', 'digest=x']);
  assert.equal(match('/g/{uid=**}/readme', '/g'), undefined);
  assert.equal(match('/g/{uid=**}/d/{digest}/size', '/g/size'), undefined);
});

test('a variable without ** matches exactly one segment that is not empty', () => {
  assert.deepEqual(match('/g/{id=*}/versions', '/g/a/versions'), ['id=a']);
  assert.equal(match('/g/{id=*}/versions', '/g/a/b/versions'), undefined);
  assert.equal(match('/g/{id=*}/versions', '/g//versions'), undefined);
  assert.equal(match('/g/{id}', '/g'), undefined);
});

test('literals only match themselves', () => {
  assert.deepEqual(match('/g/list', '/g/list'), []);
  assert.equal(match('/g/list', '/g/list/'), undefined);
  assert.equal(match('/g/list', '/g/List'), undefined);
});

test('the more specific template sorts first', () => {
  const sorted = ['/r/{uid=**}', '/r', '/r/{uid=**}/readme', '/r/{uid=**}/d/{digest}/size', '/r/{id}'].toSorted(
    (a, b) => compareSpecificity(parseTemplate(a), parseTemplate(b)),
  );
  assert.deepEqual(sorted, ['/r', '/r/{id}', '/r/{uid=**}/d/{digest}/size', '/r/{uid=**}/readme', '/r/{uid=**}']);
});
