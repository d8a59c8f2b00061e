import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '../base/clock.ts';
import type { Sample } from '../base/instruments.ts';
import type { Log } from '../base/log.ts';
import type { GaugeDeclaration } from '../base/metrics.ts';
import type { Store } from '../store/store.ts';
import { readStorageStatistics, type StorageStatistics } from './storage-statistics.ts';

export interface StorageGaugesOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Pick<Log, 'warn'>;
  /** Whether each organization has gauges of its own. */
  readonly byOrganization: boolean;
}

export interface StorageGauges {
  readonly gauges: readonly GaugeDeclaration[];
  stop(): void;
}

/** How long statistics are used before they are read again. */
const AGE_MS = 60_000;
/** How long the first collection of metrics waits for statistics. Later ones use those that there are. */
const FIRST_WAIT_MS = 500;
/** The most organizations with gauges of their own: each has about ten series, which all cost memory in Prometheus. */
const MAX_ORGANIZATIONS = 500;

/**
 * Gauges of what the database and the registry hold. The numbers are read in the background when metrics are collected,
 * at most once a minute. A server whose metrics are not collected reads nothing.
 */
export function createStorageGauges(options: StorageGaugesOptions): StorageGauges {
  const { store, clock, log, byOrganization } = options;
  const stopping = new AbortController();
  const statisticsOptions = { maxOrganizations: byOrganization ? MAX_ORGANIZATIONS : 0, stopping: stopping.signal };
  let statistics: (StorageStatistics & { readonly time: number }) | undefined;
  let reading: Promise<void> | undefined;

  async function read(): Promise<void> {
    try {
      const time = clock();
      statistics = { ...(await readStorageStatistics(store, statisticsOptions)), time };
    } catch (error) {
      if (!stopping.signal.aborted) log.warn({ error }, 'cannot read the statistics of the storage');
    }
  }

  async function current(): Promise<NonNullable<typeof statistics>> {
    const isOld = statistics === undefined || clock() - statistics.time >= AGE_MS;
    if (isOld && !stopping.signal.aborted) {
      reading ??= read().finally(() => {
        reading = undefined;
      });
      if (!statistics) await Promise.race([reading, delay(FIRST_WAIT_MS, undefined, { ref: false })]);
    }
    if (!statistics) throw new Error('the statistics of the storage are being read');
    return statistics;
  }

  const gauge = (
    name: string,
    help: string,
    value: (of: NonNullable<typeof statistics>) => number | readonly Sample[],
  ): GaugeDeclaration => ({ name, help, isShared: true, read: async () => value(await current()) });

  const gauges = [
    gauge('wharf_resources', 'Resources, by kind.', ({ resources }) => byKind(resources)),
    gauge('wharf_organizations', 'Organizations.', ({ organizations }) => organizations),
    gauge('wharf_database_size_bytes', 'Bytes of the database on disk.', ({ databaseBytes }) => databaseBytes),
    gauge('wharf_registry_blobs', 'Blobs that repos have, each counted once.', ({ blobs }) => blobs.count),
    gauge(
      'wharf_registry_blob_bytes',
      'Bytes of the blobs that repos have, each counted once.',
      ({ blobs }) => blobs.bytes,
    ),
    gauge('wharf_registry_uploads', 'Unfinished uploads of blobs.', ({ uploads }) => uploads.count),
    gauge(
      'wharf_registry_upload_reserved_bytes',
      'Bytes that unfinished uploads have reserved of the storage quotas.',
      ({ uploads }) => uploads.bytes,
    ),
    gauge(
      'wharf_events_waiting',
      'Events for which no deliveries were created yet.',
      ({ eventsWaiting }) => eventsWaiting,
    ),
    gauge(
      'wharf_storage_statistics_timestamp_seconds',
      'When reading the statistics of the storage began, which these gauges show.',
      ({ time }) => time / 1000,
    ),
  ];
  const organizationGauges = [
    gauge('wharf_organization_info', 'Always 1; the labels are the uid and the name of an organization.', (of) =>
      of.byOrganization.map(({ uid, name }) => ({ labels: { organization: uid, name }, value: 1 })),
    ),
    gauge('wharf_organization_resources', 'Resources of an organization, by kind.', (of) =>
      of.byOrganization.flatMap(({ uid, resources }) => byKind(resources, { organization: uid })),
    ),
    gauge('wharf_organization_storage_bytes', 'Bytes of the blobs and manifests of an organization.', (of) =>
      of.byOrganization.map(({ uid, storageBytes }) => ({ labels: { organization: uid }, value: storageBytes })),
    ),
  ];
  return {
    gauges: byOrganization ? [...gauges, ...organizationGauges] : gauges,
    stop: () => stopping.abort(),
  };
}

const byKind = (resources: ReadonlyMap<string, number>, labels: Record<string, string> = {}): Sample[] =>
  [...resources].map(([kind, value]) => ({ labels: { ...labels, kind }, value }));
