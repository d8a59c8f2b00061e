import type { Clock } from '../base/clock.ts';
import type { Sample } from '../base/instruments.ts';
import type { Log } from '../base/log.ts';
import type { GaugeDeclaration } from '../base/metrics.ts';
import type { Store } from '../store/store.ts';
import { createBackgroundReader } from './background-reader.ts';
import { countBlobs, readStorageStatistics } from './storage-statistics.ts';

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

/** The most organizations with gauges of their own: each has about ten series, which all cost memory in Prometheus. */
const MAX_ORGANIZATIONS = 500;

/**
 * Gauges of what the database and the registry hold. The numbers are read in the background when metrics are collected,
 * at most once a minute. A server whose metrics are not collected reads nothing.
 */
export function createStorageGauges(options: StorageGaugesOptions): StorageGauges {
  const { store, clock, log, byOrganization } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const onFailure = (error: unknown): void => {
    if (!signal.aborted) log.warn({ error }, 'cannot read the statistics of the storage');
  };
  const maxOrganizations = byOrganization ? MAX_ORGANIZATIONS : 0;
  const statistics = createBackgroundReader(
    () => readStorageStatistics(store, { maxOrganizations, stopping: signal }),
    { clock, onFailure },
  );
  // On their own, because counting them can take minutes.
  const blobs = createBackgroundReader(() => countBlobs(store.reader, signal), { clock, onFailure });

  const declare =
    <T>(read: () => Promise<T>) =>
    (name: string, help: string, value: (of: T) => number | readonly Sample[]): GaugeDeclaration => ({
      name,
      help,
      isShared: true,
      read: async () => value(await read()),
    });
  const gauge = declare(async () => (await statistics()).value);
  const blobGauge = declare(async () => (await blobs()).value);

  const gauges = [
    gauge('wharf_resources', 'Resources, by kind.', ({ resources }) => byKind(resources)),
    gauge('wharf_organizations', 'Organizations.', ({ organizations }) => organizations),
    gauge('wharf_database_size_bytes', 'Bytes of the database on disk.', ({ databaseBytes }) => databaseBytes),
    blobGauge('wharf_registry_blobs', 'Blobs that repos have, each counted once.', ({ count }) => count),
    blobGauge(
      'wharf_registry_blob_bytes',
      'Bytes of the blobs that repos have, each counted once.',
      ({ bytes }) => bytes,
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
    declare(async () => timesOf({ statistics: await statistics(), blobs: await blobs().catch(() => undefined) }))(
      'wharf_storage_statistics_timestamp_seconds',
      'When reading the numbers began that the gauges of the storage show.',
      (samples) => samples,
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

const timesOf = (parts: Record<string, { readonly time: number } | undefined>): Sample[] =>
  Object.entries(parts).flatMap(([part, read]) => (read ? [{ labels: { part }, value: read.time / 1000 }] : []));

const byKind = (resources: ReadonlyMap<string, number>, labels: Record<string, string> = {}): Sample[] =>
  [...resources].map(([kind, value]) => ({ labels: { ...labels, kind }, value }));
