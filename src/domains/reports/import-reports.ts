import { create } from '@bufbuild/protobuf';
import { invalid } from '../../base/errors.ts';
import { OutcomeSchema, type Refusal, RefusalSchema } from '../../contract/gen/wharfinger/imports/v1/outcome_pb.js';
import {
  type ImportReportsRequest,
  ReportImportsService,
} from '../../contract/gen/wharfinger/imports/v1/reports_pb.js';
import { DamagedError, damaged } from '../../formats/reading.ts';
import type { Operations } from '../../resource/operation.ts';
import { requireParent } from '../../resource/parent.ts';
import type { Transaction } from '../../store/store.ts';
import { holdManifest } from '../registry/manifests/manifests.ts';
import { digestRule } from '../registry/tags/tags.ts';
import { MAX_BYTES, type PreparedReport, prepareReport, unpackReport } from './prepare.ts';
import { type PutResult, putReport } from './put-report.ts';
import { reports } from './reports.ts';

const MAX_REPORTS = 100;
/** Of all reports of a request, unpacked: reading it takes a second or two. */
const MAX_TOTAL = 4 * MAX_BYTES;

/** What became of a file before its transaction began. */
type Read = PreparedReport | DamagedError;

export const reportImportOperations: Operations = {
  [`${ReportImportsService.typeName}/${ReportImportsService.method.importReports.name}`]: {
    mode: 'write',
    async prepare({ now }, request) {
      const { reports: given } = request as ImportReportsRequest;
      if (given.length > MAX_REPORTS)
        throw invalid('reports', `must have at most ${MAX_REPORTS}; send several batches`);
      const read: Read[] = [];
      let total = 0;
      // One after the other: together they would need the memory of all of them.
      for (const { content } of given) {
        read.push(
          await unpackReport(content)
            .then((text) => {
              total += text.length;
              if (total <= MAX_TOTAL) return prepareReport(text, now);
              throw invalid('reports', `must have at most ${MAX_TOTAL} bytes, unpacked; send several batches`);
            })
            .catch(asRefusal),
        );
      }
      return read;
    },
    async run({ db, now }, request, prepared) {
      const { parent, reports: given } = request as ImportReportsRequest;
      await requireParent(db.forUpdate, reports, parent);
      const counts = { created: 0, updated: 0, unchanged: 0 };
      const refusals: Refusal[] = [];
      for (const [index, read] of (prepared as readonly Read[]).entries()) {
        const { digest: asked = '' } = given[index] ?? {};
        const result = read instanceof DamagedError ? read : await takeIn(db, parent, asked, read, now);
        if (!(result instanceof DamagedError)) counts[result]++;
        else refusals.push(create(RefusalSchema, { index, id: asked, field: result.field, reason: result.reason }));
      }
      return create(OutcomeSchema, { ...counts, refusals });
    },
  },
};

function asRefusal(error: unknown): DamagedError {
  if (error instanceof DamagedError) return error;
  throw error;
}

/** Files a report under the image that was asked for, or else under the first it names that the repo has. */
async function takeIn(
  tx: Transaction,
  repo: string,
  asked: string,
  prepared: PreparedReport,
  now: number,
): Promise<PutResult | DamagedError> {
  const problem = asked === '' ? undefined : digestRule(asked);
  if (problem) return damaged('digest', problem);
  for (const digest of asked === '' ? prepared.digests : [asked]) {
    if (await holdManifest(tx, repo, digest)) return putReport(tx, repo, digest, prepared, now);
  }
  if (asked !== '') return damaged('digest', `there is no image ${asked} in this repo; push it first`);
  return damaged('digest', 'is required: the report names no image of this repo');
}
