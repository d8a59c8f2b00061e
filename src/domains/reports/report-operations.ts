import { notFound } from '../../base/errors.ts';
import {
  type GetReportRequest,
  type Report,
  ReportsService,
} from '../../contract/gen/wharfinger/reports/v1/reports_pb.js';
import type { Engine } from '../../resource/engine.ts';
import type { Operation, Operations } from '../../resource/operation.ts';
import { find } from '../../resource/read.ts';
import { standardOperations } from '../../resource/standard-methods.ts';
import { findingsIn } from './report-rows.ts';
import { reports } from './reports.ts';

const getReport: Operation = {
  mode: 'read',
  async run({ db }, request) {
    const { uid } = request as GetReportRequest;
    const stored = await find(db, reports, uid);
    if (!stored) throw notFound(reports.kind, uid);
    const report = stored.message as Report;
    report.findings = (await findingsIn(db, [uid])).byReport.get(uid) ?? [];
    return report;
  },
};

export const reportOperations = (engine: Engine): Operations => ({
  ...standardOperations(engine, reports, ReportsService),
  [`${ReportsService.typeName}/${ReportsService.method.getReport.name}`]: getReport,
});
