import { timestampMs } from '@bufbuild/protobuf/wkt';
import { type Report, ReportSchema } from '../../contract/gen/wharfinger/reports/v1/reports_pb.js';
import { defineResource, timeKey } from '../../resource/definition.ts';

/** The report of a scan of an image. Its findings are in a separate table (report-rows.ts), because lists omit them. */
export const reports = defineResource({
  kind: 'report',
  plural: 'reports',
  schema: ReportSchema,
  parents: ['repo'],
  orders: { scan_time: (report) => timeKey(scanTimeOf(report)) },
  defaultOrder: 'scan_time desc',
  references: { digest: (report) => [report.digest] },
  facets: { scanner: (report) => [String(report.scanner?.name)] },
  unique: (report, repo) => [
    { key: contentKey(repo, report), taken: 'this report exists already' },
    { key: scanKey(repo, report), taken: 'a report of this scan exists already' },
  ],
});

export const scanTimeOf = ({ scanTime }: Pick<Report, 'scanTime'>): number => (scanTime ? timestampMs(scanTime) : 0);

type ReportIdentity = Pick<Report, 'digest' | 'scanner' | 'scanTime' | 'contentDigest'>;

/** Identifies a report by its content, so that an import of the same file changes nothing even without a scan time. */
export const contentKey = (repo: string, { digest, contentDigest }: ReportIdentity): string =>
  `${repo}/${digest}/${contentDigest}`;

/** Identifies a scan. Another report of the same scan replaces the first. */
export const scanKey = (repo: string, report: ReportIdentity): string =>
  `${repo}/${report.digest}/${report.scanner?.name}/${scanTimeOf(report)}`;
