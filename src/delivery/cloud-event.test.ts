import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cloudEventHeaders, type EventRow } from './cloud-event.ts';

const row: EventRow = {
  event_id: 'e1',
  type: 'dev.example.changed.v1',
  subject: 'a',
  scope: '',
  time: 0,
  audience: 'customer',
  extensions: '{"group":"g"}',
  actor: null,
  body_type: null,
  body: null,
};
const publicUrl = 'https://wharf.example.com:8443/prefix';
const headersOf = (
  override: { subject?: string; extensions?: string; actor?: string },
  sink = 'https://example.com/',
  url = publicUrl,
) => cloudEventHeaders({ ...row, ...override }, { publicUrl: url, subscription: 's', sink });

test('empty attributes are omitted', () => {
  const { 'ce-subject': subject, 'ce-group': group, 'ce-bodytype': bodyType, 'ce-time': time } = headersOf({});
  assert.deepEqual([subject, group, bodyType, time], ['a', 'g', undefined, '1970-01-01T00:00:00.000Z']);
});

test('attributes are escaped for headers', () => {
  const values = {
    'a b"%\n': 'a%20b%22%25%0A',
    'é€😀': '%C3%A9%E2%82%AC%F0%9F%98%80',
    'half \ud800': 'half%20%EF%BF%BD',
  };
  for (const [value, expected] of Object.entries(values)) {
    assert.equal(headersOf({ subject: value })['ce-subject'], expected);
    assert.equal(headersOf({}, value)['ce-chainguarddev1webhook'], expected);
  }
});

test('the source is the URL of the collection, and for the registry its host name', () => {
  const sourceOf = (source: string, url?: string) =>
    headersOf({ extensions: JSON.stringify({ group: 'g', source }) }, 'https://example.com/', url)['ce-source'];
  assert.equal(sourceOf('/iam/v1/groups'), `${publicUrl}/iam/v1/groups`);
  assert.equal(sourceOf('registry'), 'wharf.example.com');
  assert.equal(sourceOf('registry', 'http://[::1]:8080'), '//[::1]');
});

test('an event of an earlier release has the URL of the server as its source', () => {
  assert.equal(headersOf({})['ce-source'], publicUrl);
});

test('the identity that acted is an attribute', () => {
  assert.equal(headersOf({ actor: '{"subject":"i","act":{"iss":"x"}}' })['ce-actor'], 'i');
  assert.equal(headersOf({})['ce-actor'], undefined);
});
