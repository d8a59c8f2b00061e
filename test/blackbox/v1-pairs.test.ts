import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonValue } from '@bufbuild/protobuf';
import { v1Files } from '../../src/contract/gen/files.js';
import { advisories, artifacts, documents, resolvedReports, vulnerabilityMetadata } from '../pairs/advisories.ts';
import { forEachVersionPair } from '../pairs/all.ts';
import { identityMetadata, images, readmes, termsAcceptances } from '../pairs/documents.ts';
import { type ApiFixture, onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { missingFields } from '../support/printed-fields.ts';
import { testReadPair } from '../support/read-pairs.ts';
import { testVersionPair } from '../support/version-pairs.ts';

/** Services of v1 without a counterpart in v2. v1-libraries.test.ts tests those of libraries. */
const V1_ONLY = [
  'auth.Auth',
  'libraries.AWSMarketplaceSubscriptions',
  'libraries.Entitlements',
  'libraries.LibraryPolicies',
  'libraries.LibraryPolicyBindings',
  'libraries.LibraryPolicyBlockEvents',
  'libraries.Malware',
  'libraries.NpmPackages',
  'libraries.ResolutionCache',
  'oidc.SecurityTokenService',
  'ping.PingService',
  'registry.Apko',
  'registry.Charts',
  'registry.Entitlements',
  'registry.Policies',
  'registry.Vulnerabilities',
];

const services = v1Files.flatMap((file) => file.services.map(({ typeName }) => typeName));

onEveryDatabaseAndWire('v1 and v2 of one resource', (fixture) => {
  const called = new Set<string>();
  let checked = 0;
  const recording: ApiFixture = Object.create(fixture, {
    api: {
      get: (): ApiFixture['api'] => ({
        ...fixture.api,
        call(method, request, options = { token: fixture.server.token }) {
          called.add(method.parent.typeName);
          const onJson = (json: JsonValue): void => {
            if (!services.includes(method.parent.typeName)) return;
            assert.deepEqual(missingFields(method.output, json), []);
            checked++;
          };
          return fixture.api.call(method, request, { ...options, onJson });
        },
      }),
    },
  });

  forEachVersionPair((pair) => testVersionPair(recording, pair));
  for (const reading of [termsAcceptances, readmes, identityMetadata, images]) testReadPair(recording, reading);
  for (const reading of [advisories, documents, vulnerabilityMetadata]) testReadPair(recording, reading);
  for (const reading of [artifacts, resolvedReports]) testReadPair(recording, reading);

  test('over REST, every v1 response had all fields that grpc-gateway prints', () => {
    assert.equal(checked > 50, fixture.wire === 'REST', `${checked} responses`);
  });

  test('every service of v1 with a counterpart in v2 is tested', () => {
    const untested = services.filter((service) => !called.has(service));
    assert.deepEqual(untested.map((service) => service.replace('chainguard.platform.', '')).sort(), V1_ONLY);
  });
});
