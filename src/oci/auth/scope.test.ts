import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createChallenges } from './challenge.ts';
import { formatScope, parseScope } from './scope.ts';

test("scopes are parsed as Docker's specification defines them", () => {
  assert.deepEqual(parseScope('repository:a/b:pull'), { name: 'a/b', actions: ['pull'] });
  assert.deepEqual(parseScope('repository:a/b:push,pull'), { name: 'a/b', actions: ['pull', 'push'] });
  assert.deepEqual(parseScope('repository(plugin):a/b:pull,frobnicate'), { name: 'a/b', actions: ['pull'] });
  assert.deepEqual(parseScope('repository:a/b:*'), { name: 'a/b', actions: ['pull', 'push', 'delete'] });
  for (const text of [
    '',
    'registry:catalog:*',
    'repository:a/b',
    'repository::pull',
    'repository:a b:pull',
    'repository:a"b:pull',
  ]) {
    assert.equal(parseScope(text), undefined, text);
  }
  assert.equal(formatScope({ name: 'a/b', actions: ['pull', 'push'] }), 'repository:a/b:pull,push');
});

test('a challenge names the scopes that the request needs', () => {
  const challenges = createChallenges('https://wharf.example.com:8443');
  const at = (...args: Parameters<typeof challenges.at>) => challenges.at(...args);
  const [head, none] = [
    'Bearer realm="https://wharf.example.com:8443/v2/token",service="wharf.example.com:8443"',
    new URLSearchParams(),
  ];
  assert.equal(at({ kind: 'version' }, 'GET', none), head);
  assert.equal(at({ kind: 'tags', name: 'a/b' }, 'GET', none), `${head},scope="repository:a/b:pull"`);
  const manifest = { kind: 'tagged manifest', name: 'a/b', tag: 'v1' } as const;
  assert.equal(at(manifest, 'PUT', none), `${head},scope="repository:a/b:pull,push"`);
  assert.equal(at(manifest, 'DELETE', none), `${head},scope="repository:a/b:pull,delete"`);
  const uploads = { kind: 'uploads', name: 'a/b' } as const;
  assert.equal(
    at(uploads, 'POST', new URLSearchParams('mount=x&from=c/d')),
    `${head},scope="repository:a/b:pull,push repository:c/d:pull"`,
  );
  // Nothing of a client gets into a header unless it is a name.
  assert.equal(at(uploads, 'POST', new URLSearchParams('from=c"/d')), `${head},scope="repository:a/b:pull,push"`);
  assert.equal(at({ kind: 'token' }, 'GET', none), 'Basic realm="https://wharf.example.com:8443"');
});
