import type { FieldViolation } from '../../../base/errors.ts';
import { invalid } from '../../../base/errors.ts';
import { isUid } from '../../../base/uid.ts';
import { Capability } from '../../../contract/gen/capabilities/capabilities_pb.js';
import {
  type Repo,
  type SyncConfig,
  SyncConfigSchema,
} from '../../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import type { ReadContext, WriteContext } from '../../../resource/operation.ts';
import { find, findAll, findReferring } from '../../../resource/read.ts';
import { clearOutputOnly, refuse } from '../../../resource/validate.ts';
import { findRepoNamed } from './repo-names.ts';
import { repos } from './repos.ts';

const LIST = [Capability.CAP_REPO_LIST];

/** What a repo has from the one that it follows. */
const FOLLOWED = {
  catalogTier: 'catalog_tier',
  bundles: 'bundles',
  aliases: 'aliases',
  activeTags: 'active_tags',
} as const;
type Followed = keyof typeof FOLLOWED;

/** Finds the repo that a new or changed one follows, and refuses to set what comes from there. */
export async function settleSource(ctx: WriteContext, uid: string, repo: Repo, before?: Repo): Promise<void> {
  const { syncConfig } = repo;
  if (!syncConfig) return;
  clearOutputOnly(SyncConfigSchema, syncConfig);
  if (syncConfig.source !== before?.syncConfig?.source) syncConfig.source = await resolveSource(ctx, uid, syncConfig);
  const followed = await sourceOf(ctx, syncConfig);
  // Where the source is no repo of this server, what was said first stays.
  const settled = followed ?? (before?.syncConfig && before);
  if (!settled) return;
  refuse(keysOfFollowed.flatMap((field) => problemWith(field, repo, settled)));
  follow(repo, settled);
}

/** Whether a repo follows one that may be here. */
export const follows = ({ syncConfig }: Repo): boolean => syncConfig !== undefined && isUid(syncConfig.source);

/** Shows what the followed repos have now. */
export async function presentFollowers({ db }: Pick<ReadContext, 'db'>, shown: readonly Repo[]): Promise<void> {
  const followers = shown.filter(follows);
  const sources = await findAll(db, repos, [...new Set(followers.map(({ syncConfig }) => syncConfig?.source ?? ''))]);
  const byUid = new Map(sources.map(({ uid, message }) => [uid, message as Repo]));
  for (const repo of followers) {
    const source = byUid.get(repo.syncConfig?.source ?? '');
    if (source) follow(repo, source);
  }
}

/** How many repos within the caller's sight follow this one. */
export async function countFollowers({ db, caller }: ReadContext, uid: string): Promise<number> {
  const followers = await findReferring(db, repos, 'source', uid);
  return followers.filter((follower) => caller.can(LIST, follower)).length;
}

const keysOfFollowed = Object.keys(FOLLOWED) as Followed[];

const follow = (repo: Repo, { catalogTier, bundles, aliases, activeTags }: Repo): Repo =>
  Object.assign(repo, { catalogTier, bundles, aliases, activeTags });

/** Left out, a field is what it is at the source; so that a repo can be written back as it was read, the same is fine too. */
function problemWith(field: Followed, repo: Repo, settled: Repo): FieldViolation[] {
  const [given, set] = [repo[field], settled[field]];
  const isLeftOut = typeof given === 'number' ? given === 0 : given.length === 0;
  if (isLeftOut || JSON.stringify(given) === JSON.stringify(set)) return [];
  return [
    { field: FOLLOWED[field], description: 'comes from the source in sync_config and can be changed only there' },
  ];
}

async function sourceOf({ db }: WriteContext, { source }: SyncConfig): Promise<Repo | undefined> {
  return isUid(source) ? ((await find(db.forShare, repos, source))?.message as Repo | undefined) : undefined;
}

/** The uid behind a uid, a name or an image reference, if it is of a repo that the caller may see; else the text itself. */
async function resolveSource(ctx: WriteContext, uid: string, syncConfig: SyncConfig): Promise<string> {
  const { source } = syncConfig;
  const found = isUid(source) ? source : await findRepoNamed(ctx, LIST, source, 'sync_config.source');
  if (found === undefined) return source;
  if (found === uid) throw invalid('sync_config.source', 'must be another repo');
  const repo = ctx.caller.can(LIST, found) ? await sourceOf(ctx, { ...syncConfig, source: found }) : undefined;
  if (!repo) throw invalid('sync_config.source', `there is no repo ${source} that you may list`);
  if (isUid(repo.syncConfig?.source ?? '')) {
    throw invalid('sync_config.source', `follows ${repo.syncConfig?.source} itself; name that one instead`);
  }
  return found;
}
