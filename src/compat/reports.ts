import { create } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { invalid, notFound } from '../base/errors.ts';
import { SecurityAdvisoryService } from '../contract/gen/chainguard/platform/advisory/v2/advisory_pb.js';
import {
  ResolvedVulnsReportSchema,
  SecurityAdvisory,
} from '../contract/gen/platform/advisory/v1/advisory.platform_pb.js';
import { Registry, type VulnReportRequest } from '../contract/gen/platform/registry/v1/registry.platform_pb.js';
import {
  type GetRawVulnReportRequest,
  RawVulnReportSchema,
  type VulnCountReportFilter,
  VulnCountReportListSchema,
  Vulnerabilities,
  type VulnReportFilter,
  VulnReportListSchema,
} from '../contract/gen/platform/registry/v1/vulnerabilities.platform_pb.js';
import { dayCounts } from '../domains/reports/day-counts.ts';
import { findRawReport, findReports, newestReport } from '../domains/reports/find-reports.ts';
import { reports } from '../domains/reports/reports.ts';
import type { Operation, Operations } from '../resource/operation.ts';
import { idOf } from './adapt.ts';
import { listAll } from './list-all.ts';
import { countReportOf, matchReportOf, scannerOf, vulnReportOf } from './report-mapping.ts';

/** v2 has no methods for reports on images (specification, section 1); these speak to the domain itself. */
const listVulnReports: Operation = {
  mode: 'read',
  async run(ctx, request) {
    const { repoId, digest, tag, scanner, createdSince } = request as VulnReportFilter;
    const found = await findReports(ctx, {
      ...{ repo: repoId, digest, tag, scanner: scanner?.name ?? 0 },
      ...(createdSince && { since: timestampMs(createdSince) }),
    });
    const items = found.filter((report) => !scanner?.version || report.scanner?.version === scanner.version);
    return create(VulnReportListSchema, { items: items.map(vulnReportOf) });
  },
};

const getVulnReport: Operation = {
  mode: 'read',
  async run(ctx, request) {
    const { repoId, digest } = request as VulnReportRequest;
    const found = await newestReport(ctx, repoId, digest);
    if (!found) throw notFound(reports.kind, digest);
    return matchReportOf(found);
  },
};

const getRawVulnReport: Operation = {
  mode: 'read',
  async run(ctx, request) {
    const { digest, scanner, createdAt } = request as GetRawVulnReportRequest;
    if (digest === '') throw invalid('digest', 'is required');
    const found = await findRawReport(ctx, { digest, scanner, time: createdAt && timestampMs(createdAt) });
    if (!found) throw notFound(reports.kind, digest);
    const { report, raw } = found;
    const createdTime = report.scanTime && { createdAt: report.scanTime };
    return create(RawVulnReportSchema, { digest, scanner: scannerOf(report), ...createdTime, rawReport: raw });
  },
};

const listCounts = (cumulative: boolean): Operation => ({
  mode: 'read',
  async run(ctx, request) {
    const { repo, tag, references, from, to } = request as VulnCountReportFilter;
    const asked = [
      ...(repo === '' ? [] : [{ repo, tag, prefix: '' }]),
      ...references.map((reference, i) => ({ ...reference, prefix: `references[${i}].` })),
    ];
    if (asked.length === 0) throw invalid('repo', 'is required, unless there are references');
    const tags = asked.map(({ repo, tag, prefix }) => ({
      repo,
      tags: tag === '' ? [] : [tag],
      fields: { repo: `${prefix}repo`, tag: () => `${prefix}tag` },
    }));
    const counts = await dayCounts(ctx, tags, { from, to, fields: { from: 'from', to: 'to' } }, cumulative);
    return create(VulnCountReportListSchema, { items: counts.map(countReportOf) });
  },
});

export const reportOperations = (operations: Operations): Operations => ({
  [idOf(Registry.method.getVulnReport)]: getVulnReport,
  [idOf(Vulnerabilities.method.listVulnReports)]: listVulnReports,
  [idOf(Vulnerabilities.method.getRawVulnReport)]: getRawVulnReport,
  [idOf(Vulnerabilities.method.listVulnCountReports)]: listCounts(false),
  [idOf(Vulnerabilities.method.listCumulativeVulnCountReports)]: listCounts(true),
  ...listAll(
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
      fields: { start_time: 'from', end_time: 'to' },
    },
  ),
});
