import { timestampMs } from '@bufbuild/protobuf/wkt';
import { type Report, ReportSchema } from '../../contract/gen/wharfinger/reports/v1/reports_pb.js';
import { defineResource, timeKey } from '../../resource/definition.ts';

/** The scan of an image. What it found is kept beside the resource (report-rows.ts), because lists do not show it. */
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
    { key: contentKey(repo, report), taken: 'this report is there already' },
    { key: scanKey(repo, report), taken: 'a report of this scan is there already' },
  ],
});

export const scanTimeOf = ({ scanTime }: Pick<Report, 'scanTime'>): number => (scanTime ? timestampMs(scanTime) : 0);

type Identified = Pick<Report, 'digest' | 'scanner' | 'scanTime' | 'contentDigest'>;

/** The same report again is no other report, even when it does not say when it was made. */
export const contentKey = (repo: string, { digest, contentDigest }: Identified): string =>
  `${repo}/${digest}/${contentDigest}`;

/** Nor is another copy of the same scan. */
export const scanKey = (repo: string, report: Identified): string =>
  `${repo}/${report.digest}/${report.scanner?.name}/${scanTimeOf(report)}`;
