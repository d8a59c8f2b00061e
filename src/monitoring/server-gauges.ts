import { X509Certificate } from 'node:crypto';
import { statfs } from 'node:fs/promises';
import type { GaugeDeclaration } from '../base/metrics.ts';
import type { Store } from '../store/store.ts';

export interface ServerGaugesOptions {
  readonly store: Pick<Store, 'connections'>;
  readonly dataDir: string;
  /** Rejects while requests cannot be served. */
  readonly ready: () => Promise<void>;
  /** The certificate chain in use, as PEM; undefined without TLS. */
  readonly certificate: () => string | undefined;
}

/** How long a collection of metrics waits for the readiness check. */
const READY_MS = 1_000;

/** Gauges of the state of the server: readiness, disk, database connections and certificate. */
export function createServerGauges({ store, dataDir, ready, certificate }: ServerGaugesOptions): GaugeDeclaration[] {
  return [
    {
      name: 'wharf_ready',
      help: 'Whether the server can serve requests, as /readyz says: 1 or 0.',
      aggregator: 'min',
      read: () => isReady(ready),
    },
    {
      name: 'wharf_disk_free_bytes',
      help: 'Bytes that the server can still write to the file system of the data directory.',
      isShared: true,
      read: async () => {
        const { bavail, bsize } = await statfs(dataDir);
        return bavail * bsize;
      },
    },
    {
      name: 'wharf_disk_size_bytes',
      help: 'Bytes of the file system of the data directory.',
      isShared: true,
      read: async () => {
        const { blocks, bsize } = await statfs(dataDir);
        return blocks * bsize;
      },
    },
    {
      name: 'wharf_database_connections',
      help: 'Connections to PostgreSQL that are used or idle, and statements that wait for one.',
      read() {
        const counts = store.connections?.();
        return counts && Object.entries(counts).map(([state, value]) => ({ labels: { state }, value }));
      },
    },
    {
      name: 'wharf_tls_certificate_expiry_timestamp_seconds',
      help: 'When the TLS certificate in use expires.',
      // A process that still uses an old certificate is the one to see.
      aggregator: 'min',
      read() {
        const chain = certificate();
        return chain === undefined ? undefined : new X509Certificate(chain).validToDate.getTime() / 1000;
      },
    },
  ];
}

function isReady(ready: () => Promise<void>): Promise<0 | 1> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, READY_MS, 0);
    ready()
      .then(
        () => resolve(1),
        () => resolve(0),
      )
      .finally(() => clearTimeout(timer));
  });
}
