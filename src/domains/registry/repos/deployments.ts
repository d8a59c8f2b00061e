import { alreadyExists, type FieldViolation, notFound } from '../../../base/errors.ts';
import { isLoopbackHost } from '../../../base/issuer-url.ts';
import type { Stored } from '../../../resource/definition.ts';
import type { ReadContext, WriteContext } from '../../../resource/operation.ts';
import { find } from '../../../resource/read.ts';
import * as rules from '../../../resource/rules.ts';
import { refuse } from '../../../resource/validate.ts';
import { update } from '../../../resource/write.ts';
import { repos } from './repos.ts';

/** A Helm chart that deploys the images of a repo. */
export interface HelmChart {
  /** Where the chart is: https or oci. */
  readonly repo: string;
  readonly chart?: string | undefined;
  readonly source?: string | undefined;
}

const KIND = 'deployment';
const MAX_CHARTS = 100;
const word = rules.line(512);

/** Kept in the state of the repo: it is asked for by itself, and goes with the repo. */
function chartsIn({ state }: Stored): readonly HelmChart[] | undefined {
  return state?.deployment as readonly HelmChart[] | undefined;
}

export async function getDeployment({ db }: ReadContext, repo: string): Promise<readonly HelmChart[]> {
  const stored = await find(db, repos, repo);
  const charts = stored && chartsIn(stored);
  if (!charts) throw notFound(KIND, repo);
  return charts;
}

/** Says for the first time, or anew, what deploys a repo. */
export async function putDeployment(
  { db, now }: WriteContext,
  repo: string,
  charts: readonly HelmChart[],
  which: 'first' | 'next',
): Promise<void> {
  refuse(problemsOf(charts));
  const stored = await find(db.forUpdate, repos, repo);
  if (!stored) throw notFound(repos.kind, repo);
  const before = chartsIn(stored);
  if (before && which === 'first') throw alreadyExists(KIND, repo, `${repo} has a deployment already; update that`);
  if (!before && which === 'next') throw notFound(KIND, repo);
  const deployment = charts.map(({ repo, chart, source }) => ({ repo, chart, source }));
  await update(db, repos, stored, { message: stored.message, state: { ...stored.state, deployment } }, now);
}

function problemsOf(charts: readonly HelmChart[]): FieldViolation[] {
  if (charts.length > MAX_CHARTS) return [{ field: 'charts', description: `must have at most ${MAX_CHARTS} items` }];
  return charts.flatMap(({ repo, chart = '', source = '' }, at) => {
    const found = { repo: helmRepoProblem(repo), chart: word(chart), source: word(source) };
    return Object.entries(found).flatMap(([field, description]) =>
      description ? [{ field: `charts[${at}].${field}`, description }] : [],
    );
  });
}

/** Without encryption only on this machine, and never with a password in it. */
function helmRepoProblem(text: string): string | undefined {
  const right = 'must be an https or oci URL with a host and without a password';
  if (text.length > 2048 || !URL.canParse(text)) return right;
  const { protocol, hostname, username, password } = new URL(text);
  const isSafe = protocol === 'https:' || protocol === 'oci:' || (protocol === 'http:' && isLoopbackHost(hostname));
  return isSafe && hostname !== '' && username === '' && password === '' ? undefined : right;
}
