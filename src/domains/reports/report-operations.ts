import { notFound } from '../../base/errors.ts';
import { ReportsService } from '../../contract/gen/wharfinger/reports/v1/reports_pb.js';
import type { Engine } from '../../resource/engine.ts';
import { type Operations, readOperation } from '../../resource/operation.ts';
import { find } from '../../resource/read.ts';
import { standardOperations } from '../../resource/standard-methods.ts';
import { readFindings } from './report-rows.ts';
import { reports } from './reports.ts';

export const reportOperations = (engine: Engine): Operations => ({
  ...standardOperations(engine, reports, ReportsService),
  // Unlike the standard Get, it returns the findings too.
  ...readOperation(ReportsService.method.getReport, async ({ db }, { uid }) => {
    const stored = await find(db, reports, uid);
    if (!stored) throw notFound(reports.kind, uid);
    const report = stored.message;
    report.findings = (await readFindings(db, [uid])).byReport.get(uid) ?? [];
    return report;
  }),
});
