import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventSource, REGISTRY_SOURCE } from './event-source.ts';

const sourceOf = (template: string, domain = 'iam'): string =>
  eventSource({ domain, routes: [{ verb: 'POST', template, body: '*' }] });

test('the source is the route without the resource', () => {
  assert.equal(sourceOf('/iam/v1/groups/{parent=**}'), '/iam/v1/groups');
  assert.equal(sourceOf('/iam/v2/groups/{group.uid=**}'), '/iam/v2/groups');
  assert.equal(sourceOf('/iam/v1/rolebindings/batch/{parent=**}'), '/iam/v1/rolebindings/batch');
  assert.equal(
    sourceOf('/iam/v2/identityProviders/{identity_provider_uid=**}:generateScimToken'),
    '/iam/v2/identityProviders',
  );
  assert.equal(sourceOf('/registry/v2/repos/{repo_readme.uid=**}/readme'), '/registry/v2/repos');
});

test('the source of a method without a resource in its route is the whole route', () => {
  assert.equal(sourceOf('/auth/v1/register'), '/auth/v1/register');
  assert.equal(sourceOf('/iam/v2/roleBindings:batchCreate'), '/iam/v2/roleBindings:batchCreate');
});

test('the registry is one source, and a method without a route has none', () => {
  assert.equal(sourceOf('/v2/{name=**}/manifests/{digest}', 'oci'), REGISTRY_SOURCE);
  assert.equal(eventSource({ domain: 'iam', routes: [] }), '');
});
