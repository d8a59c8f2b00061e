import { type FieldViolation, notFound } from '../../../base/errors.ts';
import { isUid, type Uid } from '../../../base/uid.ts';
import { CatalogTier, type Repo, RepoSchema } from '../../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { defineResource } from '../../../resource/definition.ts';
import { exists, findUid } from '../../../resource/read.ts';
import * as rules from '../../../resource/rules.ts';
import type { Reader, Transaction } from '../../../store/store.ts';
import { RegistryError } from '../errors.ts';
import { uncountRepo } from '../storage/organization-storage.ts';
import { bundleProblems } from './bundle-rules.ts';
import { itemProblems } from './item-problems.ts';
import { isTagName, repoNameRule } from './name-rules.ts';
import { overlayProblems } from './overlay-rules.ts';

const ALIAS = /^[a-zA-Z0-9_.\-/]*[a-zA-Z0-9_.-]:[a-zA-Z0-9_.-]+$/;
const MAX_ALIASES = 100;
const MAX_ACTIVE_TAGS = 1000;

/** A repository of images. The rules for repos that are synced from another one are in sync-source.ts. */
export const repos = defineResource({
  kind: 'repo',
  plural: 'repos',
  schema: RepoSchema,
  parents: ['group'],
  cascade: ['tag', 'report', 'version lifecycle'],
  rules: { name: repoNameRule, description: rules.description },
  check: problemsOf,
  orders: { name: (repo) => repo.name },
  references: {
    source: ({ syncConfig: { source = '' } = {} }) => (isUid(source) ? [source] : []),
    // A repo that is synced from another has no tier of its own, so the repos with a tier are the catalog.
    catalog_tier: ({ catalogTier }) => (catalogTier === CatalogTier.UNSPECIFIED ? [] : [String(catalogTier)]),
  },
  unique: ({ name }, group) => [{ key: repoKey(group, name), taken: `a repo named ${name} exists in ${group}` }],

  async beforeDelete({ db }, { uid }) {
    await uncountRepo(db, uid);
    for (const table of CONTENT_TABLES) await db.run(`DELETE FROM ${table} WHERE repo = $1`, uid);
  },
});

/** Rows that are deleted with a repo. Blobs stay for garbage collection, because other repos may link them. */
const CONTENT_TABLES = [
  'tag_target',
  'tag_history',
  'manifest_link',
  'manifest',
  'blob_link',
  'vulnerability_report',
] as const;

/** Whether the source of a repo is a uid, and so may be a repo of this server. */
export const hasSourceRepo = ({ syncConfig }: Repo): boolean => syncConfig !== undefined && isUid(syncConfig.source);

/** The unique key of a repo. */
export const repoKey = (group: string, name: string): string => `${group}/${name}`;

function problemsOf({ catalogTier, bundles, aliases, activeTags, syncConfig, customOverlay }: Repo): FieldViolation[] {
  const isKnownTier = Object.values(CatalogTier).includes(catalogTier);
  const { source, google, amazon, azure } = syncConfig ?? {};
  return [
    ...(isKnownTier ? [] : [{ field: 'catalog_tier', description: 'must be a known tier' }]),
    ...bundleProblems(bundles),
    ...itemProblems('aliases', aliases, MAX_ALIASES, isAlias, `must match ${ALIAS.source}, at most 255 characters`),
    ...itemProblems('active_tags', activeTags, MAX_ACTIVE_TAGS, isTagName, 'must be a tag name'),
    ...Object.entries({ source, google, amazon, azure }).flatMap(([field, text = '']) => {
      const description = rules.line(512)(text);
      return description ? [{ field: `sync_config.${field}`, description }] : [];
    }),
    ...(customOverlay ? overlayProblems(customOverlay) : []),
  ];
}

const isAlias = (alias: string): boolean => alias.length <= 255 && ALIAS.test(alias);

export async function requireRepo(db: Reader, uid: string): Promise<void> {
  if (!(await exists(db, repos.kind, uid))) throw notFound(repos.kind, uid);
}

/** Locks a repo, so that it cannot be deleted before the transaction ends. Returns its uid. */
export async function lockRepo(tx: Transaction, uid: string): Promise<Uid> {
  const found = await findUid(tx.forShare, repos.kind, uid);
  if (found === undefined) throw new RegistryError('NAME_UNKNOWN', 'the repo does not exist');
  return found;
}
