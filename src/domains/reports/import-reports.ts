import { create } from '@bufbuild/protobuf';
import { invalid } from '../../base/errors.ts';
import { OutcomeSchema, type Refusal, RefusalSchema } from '../../contract/gen/wharfinger/imports/v1/outcome_pb.js';
import { ReportImportsService } from '../../contract/gen/wharfinger/imports/v1/reports_pb.js';
import { MalformedFieldError, malformed } from '../../formats/strict-json.ts';
import { writeOperation } from '../../resource/operation.ts';
import { requireParent } from '../../resource/parent.ts';
import type { Transaction } from '../../store/store.ts';
import { lockManifest } from '../registry/manifests/manifests.ts';
import { digestRule } from '../registry/tags/tags.ts';
import { prepareInBackground } from './prepare-in-background.ts';
import { MAX_REPORT_BYTES, type PreparedReport } from './prepare-report.ts';
import { type PutReportResult, putReport } from './put-report.ts';
import { reports } from './reports.ts';

const MAX_REPORTS = 100;
/** The size of all reports of a request after decompression. */
const MAX_TOTAL_BYTES = 4 * MAX_REPORT_BYTES;

export const reportImportOperations = writeOperation(ReportImportsService.method.importReports, {
  async prepare({ now }, { reports: files }) {
    if (files.length > MAX_REPORTS) throw invalid('reports', `must have at most ${MAX_REPORTS}; send several batches`);
    const prepared: (PreparedReport | MalformedFieldError)[] = [];
    let remaining = MAX_TOTAL_BYTES;
    // One after the other, so that only one report at a time is in memory as parsed JSON.
    for (const { content } of files) {
      const maxBytes = Math.min(MAX_REPORT_BYTES, remaining);
      const result = await prepareInBackground(content, now, maxBytes);
      if (result === undefined) {
        throw invalid('reports', `must have at most ${MAX_TOTAL_BYTES} bytes, unpacked; send several batches`);
      }
      remaining -= result.textBytes;
      prepared.push(result.report);
    }
    return prepared;
  },
  async run({ db, now }, { parent, reports: files }, prepared) {
    await requireParent(db.forUpdate, reports, parent);
    const counts = { created: 0, updated: 0, unchanged: 0 };
    const refusals: Refusal[] = [];
    for (const [index, report] of prepared.entries()) {
      const { digest = '' } = files[index] ?? {};
      const result =
        report instanceof MalformedFieldError ? report : await storeReport(db, parent, digest, report, now);
      if (!(result instanceof MalformedFieldError)) counts[result]++;
      else refusals.push(create(RefusalSchema, { index, id: digest, field: result.field, reason: result.reason }));
    }
    return create(OutcomeSchema, { ...counts, refusals });
  },
});

/** Stores a report for the image of the request, or else for the first image of the report that the repo has. */
async function storeReport(
  tx: Transaction,
  repo: string,
  requestedDigest: string,
  report: PreparedReport,
  now: number,
): Promise<PutReportResult | MalformedFieldError> {
  const problem = requestedDigest === '' ? undefined : digestRule(requestedDigest);
  if (problem) return malformed('digest', problem);
  for (const digest of requestedDigest === '' ? report.digests : [requestedDigest]) {
    if (await lockManifest(tx, repo, digest)) return putReport(tx, repo, digest, report, now);
  }
  if (requestedDigest !== '') {
    return malformed('digest', `there is no image ${requestedDigest} in this repo; push it first`);
  }
  return malformed('digest', 'is required, because the report names no image of this repo');
}
