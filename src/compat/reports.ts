import { create } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { invalid, notFound } from '../base/errors.ts';
import { mapInSlices } from '../base/slices.ts';
import { SecurityAdvisoryService } from '../contract/gen/chainguard/platform/advisory/v2/advisory_pb.js';
import {
  ResolvedVulnsReportSchema,
  SecurityAdvisory,
} from '../contract/gen/platform/advisory/v1/advisory.platform_pb.js';
import { Registry } from '../contract/gen/platform/registry/v1/registry.platform_pb.js';
import {
  RawVulnReportSchema,
  type VulnCountReportFilter,
  type VulnCountReportList,
  VulnCountReportListSchema,
  Vulnerabilities,
  type VulnReport,
  VulnReportListSchema,
} from '../contract/gen/platform/registry/v1/vulnerabilities.platform_pb.js';
import { computeDayCounts } from '../domains/reports/day-counts.ts';
import { findNewestReport, findRawReport, findReports } from '../domains/reports/find-reports.ts';
import { reports } from '../domains/reports/reports.ts';
import { type Operations, type ReadContext, readOperation } from '../resource/operation.ts';
import { adaptList } from './adapt-list.ts';
import { countReportOf, matchReportOf, scannerOf, vulnReportOf } from './report-mapping.ts';

/* v2 has no methods for reports on images (specification, section 1), so these operations call the domain. */

const listVulnReports = readOperation(Vulnerabilities.method.listVulnReports, async (ctx, filter) => {
  const { repoId, digest, tag, scanner, createdSince } = filter;
  const found = await findReports(ctx, {
    ...{ repo: repoId, digest, tag, scanner: scanner?.name ?? 0 },
    ...(createdSince && { since: timestampMs(createdSince) }),
  });
  const items = found.filter((report) => !scanner?.version || report.scanner?.version === scanner.version);
  const reportItems: VulnReport[] = [];
  for (const report of items) reportItems.push(await vulnReportOf(report));
  return create(VulnReportListSchema, { items: reportItems });
});

const getVulnReport = readOperation(Registry.method.getVulnReport, async (ctx, { repoId, digest }) => {
  const found = await findNewestReport(ctx, repoId, digest);
  if (!found) throw notFound(reports.kind, digest);
  return matchReportOf(found);
});

const getRawVulnReport = readOperation(Vulnerabilities.method.getRawVulnReport, async (ctx, request) => {
  const { digest, scanner, createdAt } = request;
  if (digest === '') throw invalid('digest', 'is required');
  const found = await findRawReport(ctx, { digest, scanner, time: createdAt && timestampMs(createdAt) });
  if (!found) throw notFound(reports.kind, digest);
  const { report, raw } = found;
  const createdTime = report.scanTime && { createdAt: report.scanTime };
  return create(RawVulnReportSchema, { digest, scanner: scannerOf(report), ...createdTime, rawReport: raw });
});

const listVulnCountReports = readOperation(Vulnerabilities.method.listVulnCountReports, (ctx, filter) =>
  countByDay(ctx, filter, false),
);

const listCumulativeVulnCountReports = readOperation(
  Vulnerabilities.method.listCumulativeVulnCountReports,
  (ctx, filter) => countByDay(ctx, filter, true),
);

async function countByDay(
  ctx: ReadContext,
  { repo, tag, references, from, to }: VulnCountReportFilter,
  cumulative: boolean,
): Promise<VulnCountReportList> {
  const requested = [
    ...(repo === '' ? [] : [{ repo, tag, prefix: '' }]),
    ...references.map((reference, i) => ({ ...reference, prefix: `references[${i}].` })),
  ];
  if (requested.length === 0) throw invalid('repo', 'is required if there are no references');
  const tags = requested.map(({ repo, tag, prefix }) => ({
    repo,
    tags: tag === '' ? [] : [tag],
    fields: { repo: `${prefix}repo`, tag: () => `${prefix}tag` },
  }));
  const counts = await computeDayCounts(ctx, tags, { from, to, fields: { from: 'from', to: 'to' } }, cumulative);
  return create(VulnCountReportListSchema, { items: await mapInSlices(counts, countReportOf) });
}

export const reportOperations = (operations: Operations): Operations => ({
  ...getVulnReport,
  ...listVulnReports,
  ...getRawVulnReport,
  ...listVulnCountReports,
  ...listCumulativeVulnCountReports,
  ...adaptList(
    operations,
    SecurityAdvisory.method.listResolvedVulnsReports,
    SecurityAdvisoryService.method.listResolvedVulnsReports,
    {
      request: ({ imageRefs, from, to }) => ({
        imageRefs: imageRefs.map(({ repo, tags }) => ({ repo, tags })),
        ...(from && { startTime: from }),
        ...(to && { endTime: to }),
      }),
      response: ({ resolvedVulnsReports }) =>
        resolvedVulnsReports.map(({ date, resolvedVulns }) =>
          create(ResolvedVulnsReportSchema, {
            ...(date && { date }),
            resolvedVulns: resolvedVulns.map(({ id, aliases, cvssSeverities }) => ({
              id,
              aliases,
              cvssSeverities: cvssSeverities.map(({ type, score }) => ({ type: Number(type), score })),
            })),
          }),
        ),
      v1FieldNames: { start_time: 'from', end_time: 'to' },
    },
  ),
});
