import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { ReportImportsService } from '../../src/contract/gen/wharfinger/imports/v1/reports_pb.js';
import { ReportsService } from '../../src/contract/gen/wharfinger/reports/v1/reports_pb.js';
import type { Bench } from './every-database-and-wire.ts';
import { pushImage, withStore } from './images.ts';
import { asBytes, grypeReport, type Scan } from './scans.ts';

const { importReports } = ReportImportsService.method;
const { listReports } = ReportsService.method;

let repos = 0;

export type ScannedRepo = Awaited<ReturnType<typeof newRepo>>;

/** A repo of its own, and how it is filled with images and reports. */
export async function newRepo(bench: Bench) {
  const group = await bench.newGroup();
  const name = `scanned-${++repos}`;
  const { uid } = await bench.api.call(ReposService.method.createRepo, { parent: group, repo: { name } });
  return {
    group,
    name,
    uid,
    /** Pushes an image with content of its own; `time` is when. */
    image: (content: string, tag?: string, time = '2026-07-01T00:00:00Z') =>
      withStore(bench.server, (store) => pushImage(store, uid, tag, { content, now: Date.parse(time) })),
    import: (...reports: { content: Uint8Array; digest?: string }[]) =>
      bench.api.call(importReports, { parent: uid, reports }),
    scan: (digest: string, scan: Scan, write: (scan: Scan) => unknown = grypeReport) =>
      bench.api.call(importReports, { parent: uid, reports: [{ content: asBytes(write(scan)), digest }] }),
    list: async () => (await bench.api.call(listReports, { uidp: { childrenOf: uid } })).reports,
  };
}
