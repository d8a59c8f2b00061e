import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { ReportImportsService } from '../../src/contract/gen/wharfinger/imports/v1/reports_pb.js';
import { ReportsService } from '../../src/contract/gen/wharfinger/reports/v1/reports_pb.js';
import type { ApiFixture } from './api-fixture.ts';
import { insertImage, withStore } from './images.ts';
import { asBytes, grypeReport, type SampleScan } from './scans.ts';

const { importReports } = ReportImportsService.method;
const { listReports } = ReportsService.method;

let repoCount = 0;

export type ScannedRepo = Awaited<ReturnType<typeof newScannedRepo>>;

/** Creates a repo, and functions that add images and scan reports to it. */
export async function newScannedRepo(fixture: ApiFixture) {
  const group = await fixture.newGroup();
  const name = `scanned-${++repoCount}`;
  const { uid } = await fixture.api.call(ReposService.method.createRepo, { parent: group, repo: { name } });
  return {
    group,
    name,
    uid,
    /** Inserts an image that was pushed at `time`. */
    addImage: (content: string, tag?: string, time = '2026-07-01T00:00:00Z') =>
      withStore(fixture.server, (store) => insertImage(store, uid, tag, { content, now: Date.parse(time) })),
    importReports: (...reports: { content: Uint8Array; digest?: string }[]) =>
      fixture.api.call(importReports, { parent: uid, reports }),
    importScan: (digest: string, scan: SampleScan, write: (scan: SampleScan) => unknown = grypeReport) =>
      fixture.api.call(importReports, { parent: uid, reports: [{ content: asBytes(write(scan)), digest }] }),
    listReports: async () => (await fixture.api.call(listReports, { uidp: { childrenOf: uid } })).reports,
  };
}
