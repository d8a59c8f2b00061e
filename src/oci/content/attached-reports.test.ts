import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Descriptor, Manifest } from '../../domains/registry/manifests/manifest.ts';
import { reportLayer } from './attached-reports.ts';

const layer = (mediaType: string): Descriptor =>
  ({ mediaType, digest: `sha256:${'a'.repeat(64)}`, size: 1 }) as Descriptor;
const isReport = (mediaType: string): boolean =>
  reportLayer({ subject: 'sha256:…', layers: [layer(mediaType)] } as object as Manifest) !== undefined;

test('reports are recognized by their media type', () => {
  const known = ['grype+json', 'vnd.aquasec.trivy.report+json', 'vnd.anchore.grype+json', 'trivy.report.v1+json+gzip'];
  for (const type of known) assert.ok(isReport(`application/${type}`), type);
  for (const type of ['json', 'trivyal+json', 'grype', 'vnd.trivy/x+json'])
    assert.ok(!isReport(`application/${type}`), type);
});

test('no media type makes the match slow', () => {
  for (const type of [`grype${'.-'.repeat(500_000)}!`, `${'-grype'.repeat(300_000)}!`, `grype${'.-'.repeat(40)}!`]) {
    assert.ok(!isReport(`application/${type}`));
  }
});
