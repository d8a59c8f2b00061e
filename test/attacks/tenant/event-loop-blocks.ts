import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { DescMethodUnary, MessageInitShape } from '@bufbuild/protobuf';
import { GroupsService } from '../../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitiesService } from '../../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { ReposService } from '../../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { AdvisoryImportsService } from '../../../src/contract/gen/wharfinger/imports/v1/advisories_pb.js';
import { LibraryImportsService } from '../../../src/contract/gen/wharfinger/imports/v1/libraries_pb.js';
import { ReportImportsService } from '../../../src/contract/gen/wharfinger/imports/v1/reports_pb.js';
import { ReportsService } from '../../../src/contract/gen/wharfinger/reports/v1/reports_pb.js';
import { databases, findDatabase } from '../../support/databases.ts';
import { type MeasuredServer, startMeasuredServer } from '../../support/measured-server.ts';
import { basicAuth, buildManifest, IMAGE, type OciClient, ociClient, pushImage } from '../../support/oci-client.ts';
import { grypeReport } from '../../support/scans.ts';
import { CallError, type Client, wires } from '../../support/wires.ts';

/** The most processor time for which one request may hold the event loop. */
const MAX_BLOCK_MS = 50;

async function isSmall(server: MeasuredServer, attack: () => Promise<unknown>, runs?: number): Promise<void> {
  const block = await server.typicalBlock(attack, runs);
  assert.ok(block < MAX_BLOCK_MS, `the event loop was held for ${block.toFixed(1)} ms`);
}

/** Whether a call is refused with a typed error, and not by a failure. */
const isRefused = (field: string) => (error: unknown) => error instanceof CallError && error.fields.includes(field);

const { createIdentity } = IdentitiesService.method;
const claims = Object.fromEntries(Array.from({ length: 150_000 }, (_, at) => [`k${at}`, 'v']));
const advisory = (at: number, events: number) => ({
  artifactName: `package-${at}`,
  aliases: [`CVE-2026-${at}`],
  events: Array.from({ length: events }, (_, event) => ({
    createTime: { seconds: BigInt(1_700_000_000 + event), nanos: 0 },
    type: { case: 'fixed' as const, value: { fixedVersion: `1.${event}` } },
  })),
});

// What these requests cost does not depend on the database: they are refused before it, or the work is done elsewhere.
describe('requests of a tenant that hold the event loop', () => {
  let server: MeasuredServer;
  let group: string;
  let clients: readonly Client[];
  let oci: OciClient;
  let repository: string;
  before(async () => {
    server = await startMeasuredServer(findDatabase());
    clients = wires.map((wire) => wire.connect(server.url, server.token));
    group = (await onREST(GroupsService.method.createGroup, { parent: server.organization, group: { name: 'team' } }))
      .uid;
    const { name } = await onREST(GroupsService.method.getGroup, { uid: server.organization });
    oci = ociClient(server.url, basicAuth(server.token));
    repository = `${name}/team/app`;
  });
  after(async () => {
    for (const client of clients) client.close();
    oci.close();
    await server.remove();
  });
  const onREST = <M extends DescMethodUnary>(method: M, request: MessageInitShape<M['input']>) =>
    (clients[0] as Client).call(method, request);

  for (const [at, wire] of wires.entries()) {
    test(`a map of claims with 150,000 entries over ${wire.name}`, async () => {
      const value = { iss: { case: 'issuer', value: 'https://issuer.example.com' }, claims } as const;
      const identity = { name: 'x', relationship: { case: 'claimMatch', value } } as const;
      await isSmall(server, async () => {
        const call = clients[at]?.call(createIdentity, { parent: server.organization, identity });
        await assert.rejects(async () => call, isRefused(wire.name === 'REST' ? 'body' : 'request'));
      });
    });

    test(`a README that takes quadratic time to render over ${wire.name}`, async () => {
      const { updateRepoReadme, createRepo } = ReposService.method;
      const { uid } = await onREST(createRepo, { parent: group, repo: { name: `readme-${at}` } });
      const repoReadme = { uid, content: '['.repeat(128 * 1024) };
      await isSmall(server, async () => clients[at]?.call(updateRepoReadme, { repoReadme }), 2);
    });

    test(`a report of many megabytes is imported and read over ${wire.name}`, async () => {
      const { digest } = await pushImage(oci, repository, 'v1');
      const { repos } = await onREST(ReposService.method.listRepos, { name: 'app' });
      const parent = repos.find((repo) => repo.name === 'app')?.uid ?? assert.fail();
      const findings = Array.from({ length: 7_000 }, (_, i) => ({ id: `CVE-2026-${i}`, pkg: `p${i}` }));
      let scan = 0;
      const content = () =>
        gzipSync(JSON.stringify(grypeReport({ findings, digest, time: `2026-08-0${at + 1}T00:00:0${scan++}Z` })));
      await isSmall(
        server,
        async () => {
          const outcome = await clients[at]?.call(ReportImportsService.method.importReports, {
            parent,
            reports: [{ content: content(), digest }],
          });
          assert.equal(outcome?.created, 1);
        },
        2,
      );
      const { reports } = await onREST(ReportsService.method.listReports, { uidp: { childrenOf: parent } });
      const uid = reports[0]?.uid ?? assert.fail();
      await isSmall(server, async () => {
        const report = await clients[at]?.call(ReportsService.method.getReport, { uid });
        assert.equal(report?.findings.length, findings.length);
      });
    });
  }

  test('a manifest of 4 MiB with many layers, annotations or other values', async () => {
    await pushImage(oci, repository, 'v2');
    const layer = { mediaType: 'application/x', digest: `sha256:${'0'.repeat(64)}`, size: 1 };
    const image = { schemaVersion: 2, mediaType: IMAGE, config: layer };
    const annotations = Object.fromEntries(Array.from({ length: 180_000 }, (_, at) => [`k${at}`, `v${at}`]));
    const shapes = Array.from({ length: 250_000 }, (_, at) => ({ [`k${at}`]: 1 }));
    for (const fields of [{ layers: Array(24_000).fill(layer) }, { layers: [layer], annotations }, { shapes }]) {
      const { bytes, mediaType } = buildManifest({ ...image, ...fields });
      await isSmall(server, async () => {
        const headers = { 'content-type': mediaType };
        const { status } = await oci.send('PUT', `/v2/${repository}/manifests/big`, { headers, body: bytes });
        assert.equal(status, 400);
      });
    }
  });
});

for (const database of databases) {
  describe(`imports of a tenant on ${database.name}`, () => {
    let server: MeasuredServer;
    before(async () => {
      server = await startMeasuredServer(database);
    });
    after(() => server.remove());

    for (const wire of wires) {
      test(`a thousand records over ${wire.name}`, async () => {
        const client = wire.connect(server.url, server.token);
        try {
          const parent = server.organization;
          let first = wire.name === 'REST' ? 0 : 100_000;
          const ids = (count: number) => Array.from({ length: count }, () => first++);
          const { importAdvisories } = AdvisoryImportsService.method;
          await isSmall(
            server,
            async () => {
              const advisories = ids(1000).map((at) => advisory(at, 3));
              assert.equal((await client.call(importAdvisories, { parent, advisories })).created, 1000);
            },
            2,
          );
          const { importPythonLibraries } = LibraryImportsService.method;
          await isSmall(
            server,
            async () => {
              const files = [{ name: 'a.whl', sizeBytes: 1n }];
              const versions = ids(500).map((at) => ({ name: `library-${at}`, version: '1.0', files }));
              assert.equal((await client.call(importPythonLibraries, { parent, versions })).created, 500);
            },
            2,
          );
        } finally {
          client.close();
        }
      });
    }
  });
}
