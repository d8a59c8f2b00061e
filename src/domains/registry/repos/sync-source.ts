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
import { find, findMessagesByUid, findReferring } from '../../../resource/read.ts';
import { clearOutputOnly, refuse } from '../../../resource/validate.ts';
import { findRepoByReference } from './find-repo-by-reference.ts';
import { repos } from './repos.ts';

const LIST = [Capability.CAP_REPO_LIST];

/** The fields that a repo takes from its source, and their proto names. */
const SYNCED_FIELDS = {
  catalogTier: 'catalog_tier',
  bundles: 'bundles',
  aliases: 'aliases',
  activeTags: 'active_tags',
} as const;
type SyncedField = keyof typeof SYNCED_FIELDS;

const syncedFields = Object.keys(SYNCED_FIELDS) as SyncedField[];

/** Resolves the source of a new or changed repo and copies the synced fields from it. Refuses other values for them. */
export async function applySyncSource(ctx: WriteContext, uid: string, repo: Repo, before?: Repo): Promise<void> {
  const { syncConfig } = repo;
  if (!syncConfig) return;
  clearOutputOnly(SyncConfigSchema, syncConfig);
  if (syncConfig.source !== before?.syncConfig?.source) syncConfig.source = await resolveSource(ctx, uid, syncConfig);
  // When the source is not a repo of this server, the values that were stored first stay.
  const source = (await findSource(ctx, syncConfig.source)) ?? (before?.syncConfig && before);
  if (!source) return;
  refuse(syncedFields.flatMap((field) => syncedFieldProblems(field, repo, source)));
  copySyncedFields(repo, source);
}

/** Whether the source of a repo is a uid, and so may be a repo of this server. */
export const hasSourceRepo = ({ syncConfig }: Repo): boolean => syncConfig !== undefined && isUid(syncConfig.source);

/** Sets the synced fields of repos to the current values of their sources. */
export async function presentSyncedFields({ db }: Pick<ReadContext, 'db'>, presented: readonly Repo[]): Promise<void> {
  const synced = presented.filter(hasSourceRepo);
  const sources = synced.map(({ syncConfig }) => syncConfig?.source ?? '');
  const byUid = await findMessagesByUid(db, repos, sources);
  for (const repo of synced) {
    const source = byUid.get(repo.syncConfig?.source ?? '');
    if (source) copySyncedFields(repo, source);
  }
}

/** The number of repos that have this one as their source and that the caller may list. */
export async function countSyncedRepos({ db, caller }: ReadContext, uid: string): Promise<number> {
  const synced = await findReferring(db, repos, 'source', uid);
  return synced.filter((repo) => caller.can(LIST, repo)).length;
}

const copySyncedFields = (repo: Repo, { catalogTier, bundles, aliases, activeTags }: Repo): Repo =>
  Object.assign(repo, { catalogTier, bundles, aliases, activeTags });

/** A field may be absent, or equal to that of the source: clients write back what they read. */
function syncedFieldProblems(field: SyncedField, repo: Repo, source: Repo): FieldViolation[] {
  const [value, expected] = [repo[field], source[field]];
  const isAbsent = typeof value === 'number' ? value === 0 : value.length === 0;
  if (isAbsent || JSON.stringify(value) === JSON.stringify(expected)) return [];
  return [
    {
      field: SYNCED_FIELDS[field],
      description: 'comes from the repo in sync_config.source; leave it out here, or change it in that repo',
    },
  ];
}

async function findSource({ db }: WriteContext, source: string): Promise<Repo | undefined> {
  return isUid(source) ? (await find(db.forShare, repos, source))?.message : undefined;
}

/** The uid of the repo that a uid, name or image reference refers to. A text that refers to none stays as it is. */
async function resolveSource(ctx: WriteContext, uid: string, { source }: SyncConfig): Promise<string> {
  const found = isUid(source) ? source : await findRepoByReference(ctx, LIST, source, 'sync_config.source');
  if (found === undefined) return source;
  if (found === uid) throw invalid('sync_config.source', 'must be another repo');
  const repo = ctx.caller.can(LIST, found) ? await findSource(ctx, found) : undefined;
  if (!repo) throw invalid('sync_config.source', `there is no repo ${source}, or you may not list it`);
  if (isUid(repo.syncConfig?.source ?? '')) {
    throw invalid('sync_config.source', `has the source ${repo.syncConfig?.source} itself; use that one instead`);
  }
  return found;
}
