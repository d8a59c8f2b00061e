import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { findListingIndex, type IndexPhase, type ListingIndex } from '../../store/listing-indexes.ts';
import type { Store } from '../../store/store.ts';
import { checkIndex } from '../check/check-index.ts';
import type { Difference } from '../check/difference.ts';
import type { Resource } from '../definition.ts';
import { buildBatch } from './build-batch.ts';
import { type BuildProgress, findProgress, percentageOf } from './build-progress.ts';
import { createBuilderLease } from './builder-lease.ts';
import { isNeededToServe, missingParts, parsePart, partSet, partsOf } from './index-parts.ts';
import {
  beginRepair,
  countOtherConnections,
  endRepair,
  findUnindexedKinds,
  isWatching,
  watchOtherServers,
} from './other-servers.ts';
import { purgeParts } from './purge-parts.ts';
import { declarationsId, putListingIndex, registerDeclarations } from './register-declarations.ts';

/** How often a server looks whether it can go on, while another server builds or has to be stopped. */
const POLL_MS = 1_000;
/** How often a server looks whether a server with other declarations has written. */
const IDLE_POLL_MS = 5_000;
/** How often progress is logged. */
const LOG_MS = 10_000;
/** How long a batch should take: on SQLite it holds up the event loop, on PostgreSQL writers of the same rows. */
const BATCH_MS = { onlyWriter: 20, sharedDatabase: 50 };
const MIN_BATCH = 20;
const MAX_BATCH = 1_000;

export interface IndexBuilderOptions {
  readonly store: Store;
  readonly resources: readonly Resource[];
  readonly clock: Clock;
  readonly log: Log;
}

export interface IndexBuilder {
  /** Records changed declarations, and builds the parts of the indexes without which no request can be served. */
  prepare(): Promise<void>;
  /** Builds the other parts in the background. */
  start(): void;
  /** Resolves after the current batch. The next start continues. */
  stop(): Promise<void>;
}

/**
 * Keeps the listing indexes as the resources declare them. After a change of a declaration the missing parts are built in
 * short batches while the server serves; a server that is killed continues at its next start.
 *
 * 1. `waiting`: servers with other declarations are connected, which do not know the new parts.
 * 2. `purging`: rows of the new parts, which an earlier version may have left, are deleted.
 * 3. `building`: passes over all resources add them to the parts, until a pass finds nothing to do.
 * 4. `complete`: the parts are read from now on. Rows of parts that are no longer declared are deleted.
 */
export function createIndexBuilder({ store, resources, clock, log }: IndexBuilderOptions): IndexBuilder {
  const declarations = declarationsId(resources);
  const lease = createBuilderLease(store, clock);
  const stopping = new AbortController();
  const isStopping = (): boolean => stopping.signal.aborted;
  let isOnlyWriter = true;
  let running: Promise<void> | undefined;

  const wait = (ms: number): Promise<unknown> => sleep(ms, undefined, { signal: stopping.signal }).catch(() => {});
  /** Leaves a third of the time to other work. */
  const pause = async (stepMs: number): Promise<void> => void (await wait(Math.max(1, stepMs / 2)));

  async function register(): Promise<void> {
    for (;;) {
      try {
        for (const { kind, added, removed } of await registerDeclarations(store, resources, clock)) {
          log.info({ kind, added, removed }, 'the declaration of a resource has changed: its listing index is rebuilt');
        }
        await watch();
        return;
      } catch (error) {
        if (!isLockTimeout(error) || isStopping()) throw error;
        log.info({}, 'the database is busy: waiting for a lock to record the changed declarations');
        await wait(POLL_MS);
      }
    }
  }

  /**
   * Records the writes of other servers. The database may record those of this one: declarations differ also by a kind that
   * only one of two versions has. A restored database records none.
   */
  async function watch(): Promise<void> {
    // Without a change of a declaration, servers of other versions have the same listing indexes.
    if (!resources.some((resource) => (indexOf(resource)?.generation ?? 0) > 0)) return;
    isOnlyWriter = await store.write((tx) => tx.isOnlyWriter);
    if (isOnlyWriter || (await isWatching(store.reader, declarations))) return;
    await store.write((tx) => watchOtherServers(tx, declarations));
  }

  const indexOf = ({ kind }: Resource): ListingIndex | undefined => store.reader.listingIndexes?.get(kind);
  const isUnfinished = (resource: Resource): boolean =>
    missingParts(resource, indexOf(resource)) !== undefined || (indexOf(resource)?.dropping.size ?? 0) > 0;
  const neededParts = (resource: Resource): string[] =>
    [...(missingParts(resource, indexOf(resource))?.parts ?? [])].filter(isNeededToServe);

  async function prepare(): Promise<void> {
    await register();
    while (!isStopping()) {
      const waiting = resources.filter((resource) => neededParts(resource).length > 0);
      if (waiting.length === 0) return;
      if (await lease.take()) for (const resource of waiting) await buildNeededParts(resource);
      else await wait(POLL_MS);
      await store.reader.listingIndexes?.refresh();
    }
  }

  async function buildNeededParts(resource: Resource): Promise<void> {
    const parts = neededParts(resource);
    log.info({ kind: resource.kind, parts }, 'building unique keys and references before serving');
    await repair(resource);
    await changeIndex(resource, (index) => ({
      ...index,
      parts: index.parts.union(new Set(parts)),
      building: index.building.difference(new Set(parts)),
      phase: index.building.isSubsetOf(new Set(parts)) ? 'complete' : index.phase,
    }));
  }

  /** Recomputes everything of a kind, and logs what it cannot repair. */
  async function repair(resource: Resource, includeUnfinished = false): Promise<void> {
    const begun = performance.now();
    let resourcesChecked = 0;
    let logged = begun;
    const unrepaired: Difference[] = [];
    await store.snapshot((snapshot) =>
      checkIndex(store, snapshot, [resource], {
        isRepair: true,
        includeUnfinished,
        report: (difference) => {
          if (!difference.isRepaired && unrepaired.length < 10) unrepaired.push(difference);
        },
        onProgress(n) {
          resourcesChecked += n;
          if (performance.now() - logged < LOG_MS) return;
          logged = performance.now();
          log.info({ kind: resource.kind, resources: resourcesChecked }, 'checking the listing index');
        },
      }),
    );
    for (const { kind, uid, description, advice } of unrepaired) {
      log.warn(
        { kind, uid, description, advice },
        'a resource conflicts with its declaration; wharf db check shows all',
      );
    }
  }

  /** Changes the record of an index, unless its generation is over. */
  async function changeIndex(resource: Resource, change: (index: ListingIndex) => ListingIndex): Promise<void> {
    const generation = indexOf(resource)?.generation;
    await store.write(async (tx) => {
      const index = await findListingIndex(tx.forUpdate, resource.kind);
      if (index?.generation === generation && index) await putListingIndex(tx, change(index));
    });
    await store.reader.listingIndexes?.refresh();
  }

  /** Does nothing if another server, which took over from this one, has changed the phase. */
  const changePhase = (resource: Resource, from: IndexPhase, to: IndexPhase): Promise<void> =>
    changeIndex(resource, (index) => (index.phase === from ? { ...index, phase: to } : index));

  async function run(): Promise<void> {
    while (!isStopping()) {
      try {
        await store.reader.listingIndexes?.refresh();
        const unfinished = resources.filter(isUnfinished);
        const hasWork = unfinished.length > 0 || (!isOnlyWriter && (await findUnindexedKinds(store.reader)).length > 0);
        if (hasWork && (await lease.take())) await work(unfinished);
        else if (isOnlyWriter && !hasWork) return;
        else await wait(hasWork ? POLL_MS : IDLE_POLL_MS);
      } catch (error) {
        if (isStopping()) return;
        log.warn({ error }, 'cannot build a listing index now; it is tried again');
        await wait(POLL_MS);
      }
    }
  }

  let warned = -Infinity;
  async function work(unfinished: readonly Resource[]): Promise<void> {
    const others = isOnlyWriter ? 0 : await countOtherConnections(store.reader, declarations);
    if (others > 0) {
      if (clock() - warned > 60_000) {
        warned = clock();
        const kinds = unfinished.map(({ kind }) => kind);
        log.warn(
          { connections: others, kinds },
          'servers with other declarations are connected: new orders and filters have no index until they are stopped',
        );
      }
      await wait(POLL_MS);
      return;
    }
    // A server of another version may have replaced the declarations since.
    await register();
    for (const resource of unfinished) {
      if (!isStopping()) await finish(resource);
    }
    for (const kind of isOnlyWriter ? [] : await findUnindexedKinds(store.reader)) {
      if (isStopping()) return;
      const resource = resources.find((each) => each.kind === kind);
      log.info({ kind }, 'a server with other declarations has changed resources: their listing index is checked');
      await store.write((tx) => beginRepair(tx, kind));
      if (resource) await repair(resource);
      await store.write((tx) => endRepair(tx, kind));
    }
  }

  async function finish(resource: Resource): Promise<void> {
    if (indexOf(resource)?.phase === 'waiting') {
      await changePhase(resource, 'waiting', 'purging');
    }
    const purging = indexOf(resource);
    if (purging?.phase === 'purging') {
      const parts = partSet([...purging.building].filter((part) => !isNeededToServe(part)));
      await purgeParts(store, purging, parts, pauseLeased);
      if (isStopping()) return;
      await changePhase(resource, 'purging', 'building');
    }
    if (indexOf(resource)?.phase === 'building') await build(resource);
    const built = indexOf(resource);
    if (built?.phase === 'complete' && built.dropping.size > 0 && !isStopping()) await dropParts(resource, built);
  }

  /** Pauses, and throws if the server stops or another one has taken the lease. */
  async function pauseLeased(stepMs: number): Promise<void> {
    await pause(stepMs);
    if (isStopping()) throw new Error('the server is stopping');
    if (!(await lease.take())) throw new Error('another server builds the listing index');
  }

  async function build(resource: Resource): Promise<void> {
    const { kind } = resource;
    const reporter = createProgressReporter(log, kind, await findProgress(store.reader, kind));
    const target = isOnlyWriter ? BATCH_MS.onlyWriter : BATCH_MS.sharedDatabase;
    let limit = MIN_BATCH;
    while (!isStopping() && (await lease.take())) {
      const index = indexOf(resource);
      const result = index && (await buildBatch(store, resource, index, limit, clock()));
      if (!result) return;
      const { progress, isComplete, transactionMs } = result;
      reporter.update(progress);
      if (isComplete && (await complete(resource))) {
        reporter.end(progress);
        return;
      }
      // Grows slowly and shrinks fast: one batch may have been exceptionally cheap.
      const factor = Math.min(2, Math.max(0.25, target / Math.max(0.1, transactionMs)));
      if (transactionMs > 0) limit = Math.round(Math.min(MAX_BATCH, Math.max(MIN_BATCH, limit * factor)));
      await pause(transactionMs);
    }
  }

  /** Returns false if another server has written meanwhile, so that one more pass is needed. */
  async function complete(resource: Resource): Promise<boolean> {
    const { kind } = resource;
    const isWrittenByOthers = !isOnlyWriter && (await findUnindexedKinds(store.reader)).includes(kind);
    if (isWrittenByOthers) {
      await store.write((tx) => beginRepair(tx, kind));
      await repair(resource, true);
      await store.write((tx) => endRepair(tx, kind));
      return false;
    }
    await changeIndex(resource, (index) =>
      index.phase === 'building'
        ? { ...index, parts: new Set(partsOf(resource)), building: new Set(), phase: 'complete' }
        : index,
    );
    return true;
  }

  async function dropParts(resource: Resource, current: ListingIndex): Promise<void> {
    const { dropping } = current;
    const fields = new Set(Object.keys(resource.references ?? {}));
    // The rows of a reference that has another version now are still in use. Unique keys have no rows of their own.
    const unused = [...dropping].filter((part) => {
      const { type, name } = parsePart(part);
      return type !== 'reference' || !fields.has(name.replace(/#\d+$/, ''));
    });
    await purgeParts(store, current, partSet(unused), pauseLeased);
    await changeIndex(resource, (index) => ({ ...index, dropping: index.dropping.difference(dropping) }));
    log.info({ kind: resource.kind, parts: unused }, 'deleted what is no longer declared from the listing index');
  }

  return {
    prepare,
    start() {
      running ??= run();
    },
    async stop() {
      stopping.abort();
      await running;
      await lease.release().catch(() => {});
    },
  };
}

/** Whether PostgreSQL gave up waiting for a lock (SQLSTATE lock_not_available). */
const isLockTimeout = (error: unknown): boolean =>
  error instanceof Error && (error.cause as { code?: string } | undefined)?.code === '55P03';

/** Logs the beginning, the progress and the end of a build. */
function createProgressReporter(log: Log, kind: string, from: BuildProgress | undefined) {
  const begun = performance.now();
  const first = from?.done ?? 0;
  let logged = begun;
  const perSecond = ({ done }: BuildProgress): number =>
    Math.round((1000 * (done - first)) / Math.max(1, performance.now() - begun));
  log.info({ kind, done: first, total: from?.total }, 'building a listing index');
  return {
    update(progress: BuildProgress): void {
      if (performance.now() - logged < LOG_MS) return;
      logged = performance.now();
      const { done, total, pass } = progress;
      const percentage = percentageOf(progress);
      log.info({ kind, done, total, pass, percentage, perSecond: perSecond(progress) }, 'building a listing index');
    },
    end(progress: BuildProgress): void {
      const seconds = Math.round(performance.now() - begun) / 1000;
      log.info({ kind, resources: progress.done, seconds, perSecond: perSecond(progress) }, 'built a listing index');
    },
  };
}
