import { descendantRange, rootOf } from '../../../base/uid.ts';
import type { ProblemType, Report } from '../../../resource/check/difference.ts';
import { findMissing, pagesOf, type TupleLookup } from '../../../resource/check/find-tuples.ts';
import { COLUMNS, type ResourceRow, toStored } from '../../../resource/read.ts';
import type { Reader, Row, Store, Transaction } from '../../../store/store.ts';
import { tags } from '../tags/tags.ts';
import { lockStorage } from './organization-storage.ts';

// Checks the tables of the registry that follow from others: the counters of storage and the targets of tags.

const NEXT_REPO = {
  blob_link: 'SELECT min(repo) AS repo FROM blob_link WHERE repo > $1',
  manifest: 'SELECT min(repo) AS repo FROM manifest WHERE repo > $1',
};
const COUNTERS = 'SELECT organization, bytes FROM organization_storage ORDER BY organization';
const BLOB_BYTES = `SELECT coalesce(sum(size), 0) AS bytes FROM
  (SELECT DISTINCT digest, size FROM blob_link WHERE repo > $1 AND repo < $2) AS blobs`;
const MANIFEST_BYTES = 'SELECT coalesce(sum(length(bytes)), 0) AS bytes FROM manifest WHERE repo > $1 AND repo < $2';
const SET_COUNTER = 'UPDATE organization_storage SET bytes = $2 WHERE organization = $1';

const TAGS = `SELECT ${COLUMNS.join(', ')} FROM resource WHERE kind = 'tag' AND uid > $1 ORDER BY uid LIMIT 500`;
const FIND_TAG = `SELECT ${COLUMNS.join(', ')} FROM resource WHERE kind = 'tag' AND uid = $1`;
const TARGET: TupleLookup = {
  table: 'tag_target',
  columns: { repo: 'TEXT', name: 'TEXT', digest: 'TEXT', uid: 'TEXT' },
};
const TARGETS = `SELECT repo, name, digest, uid FROM tag_target WHERE (repo, name) > ($1, $2)
  ORDER BY repo, name LIMIT 500`;
const COUNT_TARGETS = 'SELECT count(*) AS n FROM tag_target';
const PUT_TARGET = `INSERT INTO tag_target (repo, name, digest, uid) VALUES ($1, $2, $3, $4)
  ON CONFLICT (repo, name) DO UPDATE SET digest = excluded.digest, uid = excluded.uid`;
const DROP_TARGET = 'DELETE FROM tag_target WHERE repo = $1 AND name = $2 AND uid = $3';

interface BytesRow extends Row {
  readonly bytes: number;
}
interface TargetRow extends Row {
  readonly repo: string;
  readonly name: string;
  readonly digest: string;
  readonly uid: string;
}

export interface RegistryCheckOptions {
  readonly report: Report;
  readonly isRepair: boolean;
}

/** Compares the counters of storage and the targets of tags with what they follow from, and repairs them. */
export async function checkRegistry(store: Store, snapshot: Reader, options: RegistryCheckOptions): Promise<void> {
  await checkCounters(store, snapshot, options);
  await checkTagTargets(store, snapshot, options);
}

async function checkCounters(store: Store, db: Reader, { report, isRepair }: RegistryCheckOptions): Promise<void> {
  const counters = new Map<string, number>();
  for (const { organization, bytes } of await db.all<BytesRow & { organization: string }>(COUNTERS)) {
    counters.set(organization, Number(bytes));
  }
  for (const organization of await organizationsWithContent(db)) {
    if (!counters.has(organization)) counters.set(organization, 0);
  }
  for (const [organization, counted] of counters) {
    const bytes = await storedBytes(db, organization);
    if (bytes === counted) continue;
    if (isRepair) await store.write((tx) => repairCounter(tx, organization));
    const description = `the counter says ${counted} bytes, but its blobs and manifests have ${bytes}`;
    const difference = { kind: 'organization', uid: organization, problem: 'storage counter' as const, description };
    report({ ...difference, isRepairable: true, isRepaired: isRepair });
  }
}

async function repairCounter(tx: Transaction, organization: string): Promise<void> {
  // Locked first: every change of the content locks the counter.
  await lockStorage(tx, organization);
  await tx.run(SET_COUNTER, organization, await storedBytes(tx, organization));
}

async function storedBytes(db: Reader, organization: string): Promise<number> {
  const range = descendantRange(organization);
  const blobs = await db.get<BytesRow>(BLOB_BYTES, ...range);
  const manifests = await db.get<BytesRow>(MANIFEST_BYTES, ...range);
  return Number(blobs?.bytes ?? 0) + Number(manifests?.bytes ?? 0);
}

async function organizationsWithContent(db: Reader): Promise<Set<string>> {
  const found = new Set<string>();
  for (const statement of Object.values(NEXT_REPO)) {
    for (let after = ''; ; ) {
      const repo = (await db.get<{ repo: string | null }>(statement, after))?.repo;
      if (!repo) break;
      found.add(rootOf(repo));
      // The first repo of the next organization.
      after = `${rootOf(repo)}0`;
    }
  }
  return found;
}

type Target = [repo: string, name: string, digest: string, uid: string];

async function checkTagTargets(store: Store, db: Reader, { report, isRepair }: RegistryCheckOptions): Promise<void> {
  const differ = (uid: string, description: string): void => {
    const problem: ProblemType = 'tag target';
    report({ kind: tags.kind, uid, problem, description, isRepairable: true, isRepaired: isRepair });
  };
  let targets = 0;
  let hasMissing = false;
  for await (const rows of pagesOf<ResourceRow>(db, TAGS, [''], ({ uid }) => [uid])) {
    const expected = rows.map(targetOf).filter((target) => target !== undefined);
    targets += expected.length;
    for (const [repo, name, digest, uid] of await findMissing(db, TARGET, [], expected)) {
      hasMissing = true;
      if (isRepair) await store.write((tx) => repairTarget(tx, uid));
      differ(uid, `pulls of ${name} in ${repo} do not get its digest ${digest}`);
    }
  }
  if (!hasMissing && Number((await db.get<{ n: number }>(COUNT_TARGETS))?.n ?? 0) === targets) return;
  for await (const rows of pagesOf<TargetRow>(db, TARGETS, ['', ''], ({ repo, name }) => [repo, name])) {
    for (const target of rows) {
      const { repo, name, uid } = target;
      const row = await db.get<ResourceRow>(FIND_TAG, uid);
      const [tagRepo, tagName] = (row && targetOf(row)) ?? [];
      if (tagRepo === repo && tagName === name) continue;
      if (isRepair) await store.write((tx) => dropExtraTarget(tx, target));
      differ(uid, `pulls of ${name} in ${repo} get an image, but there is no such tag`);
    }
  }
}

/** Returns what a pull by tag should find; undefined if the tag cannot be decoded, which is reported elsewhere. */
function targetOf(row: ResourceRow): Target | undefined {
  try {
    const { message, parent, uid } = toStored(tags, row);
    return [parent, message.name, message.digest, uid];
  } catch {
    return undefined;
  }
}

async function repairTarget(tx: Transaction, uid: string): Promise<void> {
  const row = await tx.forUpdate.get<ResourceRow>(FIND_TAG, uid);
  const target = row && targetOf(row);
  if (target) await tx.run(PUT_TARGET, ...target);
}

async function dropExtraTarget(tx: Transaction, { repo, name, uid }: TargetRow): Promise<void> {
  const row = await tx.forUpdate.get<ResourceRow>(FIND_TAG, uid);
  const target = row && targetOf(row);
  if (target?.[0] !== repo || target[1] !== name) await tx.run(DROP_TARGET, repo, name, uid);
}
