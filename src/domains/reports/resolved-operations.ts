import { create } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type ListResolvedVulnsReportsRequest,
  ListResolvedVulnsReportsResponseSchema,
  type ResolvedVuln,
  ResolvedVulnSchema,
  ResolvedVulnsReportSchema,
  SecurityAdvisoryService,
  Severity_Type,
} from '../../contract/gen/chainguard/platform/advisory/v2/advisory_pb.js';
import { readCvss } from '../../formats/cvss.ts';
import { timeKey } from '../../resource/definition.ts';
import { pageOfComputed } from '../../resource/list/computed-list.ts';
import type { PageTokens } from '../../resource/list/page-token.ts';
import type { Operation, Operations, ReadContext } from '../../resource/operation.ts';
import { endOf, periodOf } from './days.ts';
import { resolvedIn } from './resolved.ts';
import { findTags } from './tag-references.ts';
import { timelinesOf } from './timeline.ts';
import { merge, type Vulnerability } from './vulnerability.ts';

/** The vulnerabilities that went away on one day. */
interface Day {
  readonly date: number;
  readonly vulnerabilities: readonly Vulnerability[];
}

const listResolved = (tokens: PageTokens): Operation => ({
  mode: 'read',
  async run(ctx, message) {
    const request = message as ListResolvedVulnsReportsRequest;
    const { imageRefs, startTime, endTime } = request;
    const computed = {
      rows: await resolvedDays(ctx, request),
      order: 'date',
      keyOf: ({ date }: Day) => timeKey(date),
      query: [imageRefs.map(({ repo, tags }) => [repo, tags]), timeOf(startTime), timeOf(endTime)],
    };
    const { rows, ...envelope } = pageOfComputed(ctx, tokens, request, computed);
    return create(ListResolvedVulnsReportsResponseSchema, {
      ...envelope,
      resolvedVulnsReports: rows.map(({ date, vulnerabilities }) =>
        create(ResolvedVulnsReportSchema, {
          date: timestampFromMs(date),
          resolvedVulns: vulnerabilities.map(resolvedVuln),
        }),
      ),
    });
  },
});

async function resolvedDays(
  ctx: ReadContext,
  { imageRefs, startTime, endTime }: ListResolvedVulnsReportsRequest,
): Promise<Day[]> {
  const fields = { from: 'start_time', to: 'end_time' };
  const { from, to, days } = periodOf({ from: startTime, to: endTime, fields }, ctx.now);
  const asked = imageRefs.map(({ repo, tags }, i) => ({
    repo,
    tags,
    fields: { repo: `image_refs[${i}].repo`, tag: (at: number) => `image_refs[${i}].tags[${at}]` },
  }));
  // How things stood at first, and how at the end of each day.
  const moments = [from, ...days.map((day) => Math.min(endOf(day), to))];
  const found = new Map<number, Vulnerability[]>();
  for (const { repo, names } of await findTags(ctx, asked)) {
    for (const { conditions } of await timelinesOf(ctx.db, repo, names, moments)) {
      for (const { vulnerability, since } of resolvedIn(conditions)) {
        const date = days[since - 1] ?? from;
        const others = found.get(date) ?? [];
        others.push(vulnerability);
        found.set(date, others);
      }
    }
  }
  return [...found].map(([date, vulnerabilities]) => ({ date, vulnerabilities: merge(vulnerabilities) }));
}

const timeOf = (time: Timestamp | undefined): number => (time ? timestampMs(time) : 0);

const TYPES = { 2: Severity_Type.CVSS_V2, 3: Severity_Type.CVSS_V3, 4: Severity_Type.CVSS_V4 } as const;

const resolvedVuln = ({ id, names, vectors }: Vulnerability): ResolvedVuln =>
  create(ResolvedVulnSchema, {
    id,
    aliases: names.filter((name) => name !== id),
    cvssSeverities: vectors.flatMap((vector) => {
      const cvss = readCvss(vector);
      return cvss ? [{ type: TYPES[cvss.version], score: vector }] : [];
    }),
  });

export const resolvedOperations = (tokens: PageTokens): Operations => ({
  [`${SecurityAdvisoryService.typeName}/${SecurityAdvisoryService.method.listResolvedVulnsReports.name}`]:
    listResolved(tokens),
});
