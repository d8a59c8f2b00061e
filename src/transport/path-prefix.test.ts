import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { createPathPrefix } from './path-prefix.ts';

test('the prefix is removed once, and only as whole segments', () => {
  const prefix = createPathPrefix('/a/wharf');
  for (const [url, expected, removed] of [
    ['/a/wharf/iam/v2/groups?x=1', '/iam/v2/groups?x=1', true],
    ['/a/wharf', '/', true],
    ['/a/wharf/', '/', true],
    ['/a/wharf?x', '/?x', true],
    ['/a/wharf/a/wharf/docs', '/a/wharf/docs', true],
    ['/a/wharfs/docs', '/a/wharfs/docs', false],
    ['/iam/v2/groups', '/iam/v2/groups', false],
    ['/a', '/a', false],
    ['*', '*', false],
    ['http://host/a/wharf/docs', 'http://host/a/wharf/docs', false],
  ] as const) {
    const req = { url } as IncomingMessage;
    prefix.strip(req);
    assert.equal(req.url, expected);
    assert.equal(prefix.of(req), removed ? '/a/wharf' : '', url);
  }
});

test('without a prefix nothing changes', () => {
  const prefix = createPathPrefix('');
  const req = { url: '/docs' } as IncomingMessage;
  prefix.strip(req);
  assert.deepEqual([req.url, prefix.of(req), prefix.path], ['/docs', '', '']);
});
