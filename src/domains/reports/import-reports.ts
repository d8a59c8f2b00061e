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
import { MAX_REPORT_BYTES, type PreparedReport, prepareReport, unpackReport } from './prepare-report.ts';
import { type PutReportResult, putReport } from './put-report.ts';
import { reports } from './reports.ts';

const MAX_REPORTS = 100;
/** The size of all reports of a request after decompression. Parsing this much takes a second or two. */
const MAX_TOTAL_BYTES = 4 * MAX_REPORT_BYTES;

export const reportImportOperations = writeOperation(ReportImportsService.method.importReports, {
  async prepare({ now }, { reports: files }) {
    if (files.length > MAX_REPORTS) throw invalid('reports', `must have at most ${MAX_REPORTS}; send several batches`);
    const prepared: (PreparedReport | MalformedFieldError)[] = [];
    let total = 0;
    // One after the other, so that only one report at a time is in memory as parsed JSON.
    for (const { content } of files) {
      prepared.push(
        await unpackReport(content)
          .then((text) => {
            total += text.length;
            if (total <= MAX_TOTAL_BYTES) return prepareReport(text, now);
            throw invalid('reports', `must have at most ${MAX_TOTAL_BYTES} bytes, unpacked; send several batches`);
          })
          .catch(catchMalformed),
      );
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

function catchMalformed(error: unknown): MalformedFieldError {
  if (error instanceof MalformedFieldError) return error;
  throw error;
}

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
