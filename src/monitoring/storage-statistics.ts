import { setTimeout as delay } from 'node:timers/promises';
import { ROOT, type Uid } from '../base/uid.ts';
import { groups } from '../domains/iam/groups/groups.ts';
import { scopeKey, WHOLE_LIST } from '../resource/list-membership.ts';
import { find } from '../resource/read.ts';
import { batchPlaceholders, parameterBatches } from '../store/parameter-batches.ts';
import type { Reader, Row, Store } from '../store/store.ts';

/** What a database holds, without its blobs. */
export interface StorageStatistics {
  readonly databaseBytes: number;
  readonly organizations: number;
  readonly resources: ReadonlyMap<string, number>;
  /** `bytes` is what the uploads have reserved of the storage quota. */
  readonly uploads: BlobStatistics;
  /** Events for which no deliveries were created yet. */
  readonly eventsWaiting: number;
  /** Empty unless they are asked for. */
  readonly byOrganization: readonly OrganizationStatistics[];
}

export interface BlobStatistics {
  readonly count: number;
  readonly bytes: number;
}

export interface OrganizationStatistics {
  readonly uid: string;
  readonly name: string;
  readonly resources: ReadonlyMap<string, number>;
  /** The size of its blobs and manifests. */
  readonly storageBytes: number;
}

export interface StatisticsOptions {
  /** How many organizations get statistics of their own. */
  readonly maxOrganizations: number;
  /** Aborts when the server stops. */
  readonly stopping: AbortSignal;
}

/** The most rows of one statement. On SQLite it takes some milliseconds, in which nothing else runs. */
const PAGE = 1_000;
/** The most organizations of one statement, which returns a row for each kind. */
const ORGANIZATIONS = 50;
/** The pause after a page, in durations of the page: reading takes at most one percent of a core. */
const PAUSE = 99;
/** A queue is counted up to this length. */
const MAX_QUEUE = 100_000;

const ORGANIZATION_PAGE = `SELECT uid FROM resource WHERE kind = 'group' AND parent = '${ROOT}' AND uid > $1
  ORDER BY uid LIMIT ${ORGANIZATIONS}`;
const SIZES = `SELECT scope, kind, n FROM list WHERE facet = '${WHOLE_LIST}' AND scope IN (${batchPlaceholders(1)})`;
const STORAGE = 'SELECT bytes FROM organization_storage WHERE organization = $1';
const BLOB_PAGE = `SELECT digest, size FROM blob_link WHERE digest > $1 ORDER BY digest LIMIT ${PAGE}`;
const UPLOADS = `SELECT count(*) AS count, coalesce(sum(bytes), 0) AS bytes FROM (
  SELECT bytes FROM upload LIMIT ${MAX_QUEUE}
) AS open`;
const EVENTS_WAITING = `SELECT count(*) AS n FROM (
  SELECT 1 AS one FROM outbox WHERE expires IS NULL LIMIT ${MAX_QUEUE}
) AS waiting`;

/**
 * Reads what a database holds, with bounded statements and pauses between them. Sizes of resources come from the listing
 * index, which counts them.
 */
export async function readStorageStatistics(store: Store, options: StatisticsOptions): Promise<StorageStatistics> {
  const db = store.reader;
  const resources = new Map<string, number>();
  const roots = await db.all<SizeRow>(SIZES, ...batchOf([scopeKey('children', ROOT)]));
  // The descendants of an organization include itself.
  addSizes(
    resources,
    roots.filter(({ kind }) => kind !== groups.kind),
  );
  const { organizations, byOrganization } = await readOrganizations(db, resources, options);
  const uploads = await db.get<{ count: number; bytes: number }>(UPLOADS);
  return {
    databaseBytes: await store.size(),
    organizations,
    resources,
    uploads: { count: Number(uploads?.count ?? 0), bytes: Number(uploads?.bytes ?? 0) },
    eventsWaiting: (await db.get<{ n: number }>(EVENTS_WAITING))?.n ?? 0,
    byOrganization,
  };
}

interface SizeRow extends Row {
  readonly scope: string;
  readonly kind: string;
  readonly n: number;
}

const addSizes = (sums: Map<string, number>, rows: readonly SizeRow[]): void => {
  for (const { kind, n } of rows) sums.set(kind, (sums.get(kind) ?? 0) + n);
};

/** Adds the sizes of all organizations to `resources`. */
async function readOrganizations(
  db: Reader,
  resources: Map<string, number>,
  { maxOrganizations, stopping }: StatisticsOptions,
) {
  const byOrganization: OrganizationStatistics[] = [];
  const readPage = paced(stopping, async (after: string) => {
    const uids = (await db.all<{ uid: Uid }>(ORGANIZATION_PAGE, after)).map(({ uid }) => uid);
    if (uids.length === 0) return { uids, sizes: [] };
    const scopes = uids.map((uid) => scopeKey('descendants', uid));
    const sizes = await db.all<SizeRow>(SIZES, ...batchOf(scopes));
    for (const uid of uids.slice(0, maxOrganizations - byOrganization.length)) {
      byOrganization.push(await readOrganization(db, uid, sizes));
    }
    return { uids, sizes };
  });
  let organizations = 0;
  for (let after: string | undefined = ''; after !== undefined; ) {
    const { uids, sizes } = await readPage(after);
    organizations += uids.length;
    addSizes(resources, sizes);
    after = uids.length < ORGANIZATIONS ? undefined : uids.at(-1);
  }
  return { organizations, byOrganization };
}

async function readOrganization(db: Reader, uid: Uid, sizes: readonly SizeRow[]): Promise<OrganizationStatistics> {
  const resources = new Map<string, number>();
  const scope = scopeKey('descendants', uid);
  addSizes(
    resources,
    sizes.filter((row) => row.scope === scope),
  );
  const name = (await find(db, groups, uid))?.message.name ?? '';
  const storageBytes = (await db.get<{ bytes: number }>(STORAGE, uid))?.bytes ?? 0;
  return { uid, name, resources, storageBytes };
}

/**
 * Counts the blobs that repos have, each once, whichever repos and organizations have it. It reads one row after the
 * other: a million takes some minutes. Pages of rows and not of digests, because a blob that many repos have would make
 * a page of any length.
 */
export async function countBlobs(db: Reader, stopping: AbortSignal): Promise<BlobStatistics> {
  const readPage = paced(stopping, (after: string) => db.all<{ digest: string; size: number }>(BLOB_PAGE, after));
  let count = 0;
  let bytes = 0;
  let after = '';
  for (;;) {
    const rows = await readPage(after);
    for (const { digest, size } of rows) {
      if (digest === after) continue;
      after = digest;
      count++;
      bytes += size;
    }
    if (rows.length < PAGE) return { count, bytes };
  }
}

/** Pauses before all calls but the first, in proportion to the duration of the last one. */
function paced<T, R>(stopping: AbortSignal, read: (argument: T) => Promise<R> | R): (argument: T) => Promise<R> {
  let pauseMs = 0;
  return async (argument) => {
    if (pauseMs > 0) await delay(pauseMs, undefined, { signal: stopping, ref: false });
    const started = performance.now();
    const result = await read(argument);
    pauseMs = (performance.now() - started) * PAUSE;
    return result;
  };
}

/** The parameters of a statement for one batch. */
const batchOf = (values: readonly string[]): readonly string[] => [...parameterBatches(values)][0] ?? [];
