import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { test } from 'node:test';
import type { Route } from '../http/routes.ts';
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
  const url = 'https://wharf.example.com:8443';
  const challenges = createChallenges(url, () => url);
  const request = {} as IncomingMessage;
  const at = (...[route, verb, query]: [route: Route, verb: string, query: URLSearchParams]) =>
    challenges.at(request, route, verb, query);
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

test('the realm has the host that the client uses, and the service is always the same', () => {
  const challenges = createChallenges('http://127.0.0.1:8080', ({ headers }) => `http://${headers.host}`);
  const request = { headers: { host: 'box:8080' } } as IncomingMessage;
  const expected = 'Bearer realm="http://box:8080/v2/token",service="127.0.0.1:8080"';
  assert.equal(challenges.at(request, { kind: 'version' }, 'GET', new URLSearchParams()), expected);
  const { headers } = challenges.insufficient(request);
  assert.equal(headers['www-authenticate'], `${expected},error="insufficient_scope"`);
});
