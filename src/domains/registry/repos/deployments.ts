import { alreadyExists, type FieldViolation, notFound } from '../../../base/errors.ts';
import { isLoopbackHost } from '../../../base/issuer-url.ts';
import type { Repo } from '../../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import type { Stored } from '../../../resource/definition.ts';
import type { ReadContext, WriteContext } from '../../../resource/operation.ts';
import { find } from '../../../resource/read.ts';
import * as rules from '../../../resource/rules.ts';
import { refuse } from '../../../resource/validate.ts';
import { update } from '../../../resource/write.ts';
import { repos } from './repos.ts';

/** A Helm chart that deploys the images of a repo. */
export interface HelmChart {
  /** The https or oci URL of the chart repository. */
  readonly repo: string;
  readonly chart?: string | undefined;
  readonly source?: string | undefined;
}

const KIND = 'deployment';
const MAX_CHARTS = 100;
const line = rules.line(512);

/** The charts are in the private state of the repo: they have methods of their own and are deleted with the repo. */
function chartsOf({ state }: Stored<Repo>): readonly HelmChart[] | undefined {
  return state?.deployment as readonly HelmChart[] | undefined;
}

export async function getDeployment({ db }: ReadContext, repo: string): Promise<readonly HelmChart[]> {
  const stored = await find(db, repos, repo);
  const charts = stored && chartsOf(stored);
  if (!charts) throw notFound(KIND, repo);
  return charts;
}

/** Creates or replaces the deployment of a repo. A create refuses an existing one, an update a missing one. */
export async function putDeployment(
  { db, now }: WriteContext,
  repo: string,
  charts: readonly HelmChart[],
  mode: 'create' | 'update',
): Promise<void> {
  refuse(problemsOf(charts));
  const stored = await find(db.forUpdate, repos, repo);
  if (!stored) throw notFound(repos.kind, repo);
  const exists = chartsOf(stored) !== undefined;
  if (exists && mode === 'create') {
    throw alreadyExists(KIND, repo, `${repo} has a deployment already; update it instead`);
  }
  if (!exists && mode === 'update') throw notFound(KIND, repo);
  const deployment = charts.map(({ repo, chart, source }) => ({ repo, chart, source }));
  await update(db, repos, stored, { message: stored.message, state: { ...stored.state, deployment } }, now);
}

function problemsOf(charts: readonly HelmChart[]): FieldViolation[] {
  if (charts.length > MAX_CHARTS) return [{ field: 'charts', description: `must have at most ${MAX_CHARTS} items` }];
  return charts.flatMap(({ repo, chart = '', source = '' }, at) => {
    const problems = { repo: helmRepoProblem(repo), chart: line(chart), source: line(source) };
    return Object.entries(problems).flatMap(([field, description]) =>
      description ? [{ field: `charts[${at}].${field}`, description }] : [],
    );
  });
}

/** Unencrypted HTTP is allowed for loopback hosts only. A URL must not contain a password. */
function helmRepoProblem(text: string): string | undefined {
  const problem = 'must be an https or oci URL with a host and without a password';
  if (text.length > 2048 || !URL.canParse(text)) return problem;
  const { protocol, hostname, username, password } = new URL(text);
  const isSafe = protocol === 'https:' || protocol === 'oci:' || (protocol === 'http:' && isLoopbackHost(hostname));
  return isSafe && hostname !== '' && username === '' && password === '' ? undefined : problem;
}
