import assert from 'node:assert/strict';
import { test } from 'node:test';
import { v1Files } from '../../src/contract/v1-files.ts';
import { advisories, artifacts, documents, resolvedReports, vulnerabilityMetadata } from '../pairs/advisories.ts';
import { forEachPair } from '../pairs/all.ts';
import { identityMetadata, images, readmes, termsAcceptances } from '../pairs/documents.ts';
import { type Bench, everywhere } from '../support/every-database-and-wire.ts';
import { testPair } from '../support/pairs.ts';
import { testReading } from '../support/read-pairs.ts';

/** Services of v1 about nothing that v2 has: reports on images, and how callers come in. */
const ALONE = ['auth.Auth', 'oidc.SecurityTokenService', 'ping.PingService', 'registry.Vulnerabilities'];

const services = v1Files.flatMap((file) => file.services.map(({ typeName }) => typeName));

everywhere('v1 and v2 of one resource', (bench) => {
  const called = new Set<string>();
  const noting: Bench = Object.create(bench, {
    api: {
      get: (): Bench['api'] => ({
        ...bench.api,
        call(method, ...rest) {
          called.add(method.parent.typeName);
          return bench.api.call(method, ...rest);
        },
      }),
    },
  });

  forEachPair((pair) => testPair(noting, pair));
  for (const reading of [termsAcceptances, readmes, identityMetadata, images]) testReading(noting, reading);
  for (const reading of [advisories, documents, vulnerabilityMetadata]) testReading(noting, reading);
  for (const reading of [artifacts, resolvedReports]) testReading(noting, reading);

  test('every service of v1 takes part', () => {
    const left = services.filter((service) => !called.has(service));
    assert.deepEqual(left.map((service) => service.replace('chainguard.platform.', '')).sort(), ALONE);
  });
});
