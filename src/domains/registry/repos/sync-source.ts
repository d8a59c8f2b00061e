import { clone, create } from '@bufbuild/protobuf';
import type { FieldViolation } from '../../../base/errors.ts';
import { invalid } from '../../../base/errors.ts';
import { isUid, parseUid } from '../../../base/uid.ts';
import { Capability } from '../../../contract/gen/capabilities/capabilities_pb.js';
import {
  type Repo,
  RepoSchema,
  type SyncConfig,
} from '../../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import type { ReadContext, WriteContext } from '../../../resource/operation.ts';
import { find, findMessagesByUid, findReferring } from '../../../resource/read.ts';
import { refuse } from '../../../resource/validate.ts';
import { requireEntitled } from '../entitlements/effective-entitlements.ts';
import { findRepoByReference } from './find-repo-by-reference.ts';
import { hasSourceRepo, repos } from './repos.ts';
import { applySyncSettings } from './sync-settings.ts';

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

/**
 * Resolves the source of a new or changed repo, and refuses values of the synced fields that the source does not have. The
 * values of a source repo are not stored: each reader gets those that it may see. `touched` has the updated fields.
 */
export async function applySyncSource(
  ctx: WriteContext,
  uid: string,
  repo: Repo,
  before?: Repo,
  touched: ReadonlySet<string> = new Set(),
): Promise<void> {
  const { syncConfig } = repo;
  if (syncConfig) {
    applySyncSettings(ctx, syncConfig, before?.syncConfig);
    if (syncConfig.source !== before?.syncConfig?.source) syncConfig.source = await resolveSource(ctx, uid, syncConfig);
  }
  if (hasSourceRepo(repo)) {
    const source = await findReadableSource(ctx, repo);
    // The caller has not set a field that it did not change. Repos of earlier versions have copies of the source.
    const stored = before && hasSourceRepo(before) ? before : undefined;
    const given = syncedFields.filter((field) => stored === undefined || !isEqual(repo[field], stored[field]));
    refuse(given.flatMap((field) => syncedFieldProblems(field, repo, source ?? NO_VALUES)));
    copySyncedFields(repo, NO_VALUES);
  } else if (before && hasSourceRepo(before)) {
    // Its synchronization ends. It keeps the values that the caller may see.
    const kept = copySyncedFields(clone(RepoSchema, repo), (await findReadableSource(ctx, before)) ?? NO_VALUES);
    for (const field of syncedFields) {
      if (!touched.has(SYNCED_FIELDS[field])) Object.assign(repo, { [field]: kept[field] });
    }
  } else if (syncConfig && before?.syncConfig) {
    // When the source is not a repo of this server, the values that were stored first stay.
    refuse(syncedFields.flatMap((field) => syncedFieldProblems(field, repo, before)));
    copySyncedFields(repo, before);
  }
}

/** Sets the synced fields of repos to the current values of their sources, or clears them if the caller cannot list it. */
export async function presentSyncedFields(
  { db, caller }: Pick<ReadContext, 'db' | 'caller'>,
  presented: readonly Repo[],
): Promise<void> {
  const synced = presented.filter(hasSourceRepo);
  const sources = synced.map(({ syncConfig }) => syncConfig?.source ?? '');
  const byUid = await findMessagesByUid(db, repos, sources);
  for (const repo of synced) {
    const source = byUid.get(repo.syncConfig?.source ?? '');
    copySyncedFields(repo, source && caller.can(LIST, parseUid('uid', source.uid)) ? source : NO_VALUES);
  }
}

/** The repo without synced fields, for events: receivers may have no access to the source. */
export const withoutSyncedFields = (repo: Repo): Repo => copySyncedFields(clone(RepoSchema, repo), NO_VALUES);

/** The number of repos that have this one as their source and that the caller may list. */
export async function countSyncedRepos({ db, caller }: ReadContext, uid: string): Promise<number> {
  const synced = await findReferring(db, repos, 'source', uid);
  return synced.filter((repo) => caller.can(LIST, repo)).length;
}

const NO_VALUES: Repo = create(RepoSchema);

const copySyncedFields = (repo: Repo, { catalogTier, bundles, aliases, activeTags }: Repo): Repo =>
  Object.assign(repo, { catalogTier, bundles, aliases, activeTags });

/** A field may be absent, or equal to that of the source: clients write back what they read. */
function syncedFieldProblems(field: SyncedField, repo: Repo, source: Repo): FieldViolation[] {
  const value = repo[field];
  const isAbsent = typeof value === 'number' ? value === 0 : value.length === 0;
  if (isAbsent || isEqual(value, source[field])) return [];
  return [
    {
      field: SYNCED_FIELDS[field],
      description: 'comes from the repo in sync_config.source; leave it out here, or change it in that repo',
    },
  ];
}

const isEqual = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** The source repo, unless it was deleted or the caller cannot list it. */
async function findReadableSource(ctx: WriteContext, { syncConfig }: Repo): Promise<Repo | undefined> {
  const source = syncConfig?.source ?? '';
  return isUid(source) && ctx.caller.can(LIST, source) ? findSource(ctx, source) : undefined;
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
  await requireEntitled(ctx, uid, repo);
  return found;
}
