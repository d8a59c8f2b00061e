import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { ReportsService, ScannerName } from '../../src/contract/gen/wharfinger/reports/v1/reports_pb.js';
import { databases } from '../support/databases.ts';
import { capturedLog } from '../support/inspect.ts';
import {
  buildManifest,
  descriptorFor as descriptorOf,
  IMAGE,
  type Manifest,
  pushImage,
} from '../support/oci-client.ts';
import { createOciFixture, type Team } from '../support/oci-fixture.ts';
import { asBytes, grypeReport, trivyReport } from '../support/scans.ts';

const GRYPE = 'application/vnd.anchore.grype+json';
const TRIVY = 'application/vnd.aquasec.trivy.report+json';
const EMPTY = Buffer.from('{}');

for (const database of databases) {
  describe(`reports attached to images on ${database.name}`, () => {
    const { log, lines } = capturedLog();
    const fixture = createOciFixture(database, { log });
    let team: Team;
    let name: string;
    let image: Manifest;
    before(async () => {
      team = await fixture.newTeam();
      name = `${team.name}/app`;
      image = await pushImage(fixture.owner, name, 'latest');
    });

    /** Attaches a report like `oras attach`, as a caller that can only push. */
    async function attach(content: Buffer, types: { artifact?: string; layer?: string }): Promise<void> {
      const pusher = await fixture.withRole('registry.push', team.uid);
      for (const blob of [EMPTY, content]) await pusher.pushBlob(name, blob);
      const { mediaType, bytes } = image;
      const manifest = buildManifest({
        schemaVersion: 2,
        mediaType: IMAGE,
        ...(types.artifact && { artifactType: types.artifact }),
        config: descriptorOf('application/vnd.oci.empty.v1+json', EMPTY),
        layers: [descriptorOf(types.layer ?? 'application/json', content)],
        subject: descriptorOf(mediaType, bytes),
      } as { mediaType: string });
      await pusher.pushManifest(name, manifest.digest, manifest);
    }

    async function reports() {
      const { repos } = await fixture.api.call(ReposService.method.listRepos, { uidp: { childrenOf: team.uid } });
      const uidp = { childrenOf: repos[0]?.uid ?? '' };
      return (await fixture.api.call(ReportsService.method.listReports, { uidp })).reports;
    }

    test('reports are imported on push by the type of the artifact or its layer, once each', async () => {
      const grype = asBytes(grypeReport({ findings: [{ id: 'CVE-2026-1' }] }));
      await attach(grype, { artifact: GRYPE });
      await attach(grype, { artifact: GRYPE });
      await attach(gzipSync(asBytes(trivyReport({ findings: [] }))), { artifact: 'application/x', layer: TRIVY });
      const found = await reports();
      assert.deepEqual(found.map(({ scanner }) => scanner?.name).sort(), [ScannerName.GRYPE, ScannerName.TRIVY]);
      assert.deepEqual(new Set(found.map(({ digest }) => digest)), new Set([image.digest]));
    });

    test('an invalid report does not fail the push, and the reason is logged', async () => {
      const before = await reports();
      await attach(Buffer.from('{"matches": 7, "descriptor": {}}'), { artifact: GRYPE });
      assert.ok(lines.some((line) => line.includes('could not be read') && line.includes('matches')));
      await attach(asBytes({ some: 'thing' }), { artifact: TRIVY });
      await attach(asBytes(grypeReport({ findings: [], time: '2026-08-09T00:00:00Z' })), {
        artifact: 'application/spdx+json',
      });
      assert.deepEqual(await reports(), before);
    });
  });
}
