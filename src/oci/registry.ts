import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Blobs } from '../blobs/blobs.ts';
import type { Method } from '../contract/method.ts';
import type { Tokens } from '../identity/tokens/access-tokens.ts';
import type { Caller } from '../resource/caller.ts';
import type { Operations } from '../resource/operation.ts';
import { putSettingIfAbsent } from '../store/settings.ts';
import type { Store } from '../store/store.ts';
import { createChallenges } from './auth/challenge.ts';
import { createCredentials } from './auth/credentials.ts';
import { createPermission } from './auth/permission.ts';
import { createTokenEndpoint } from './auth/token-endpoint.ts';
import { createAttachedReports } from './content/attached-reports.ts';
import { createBlobs } from './content/blobs.ts';
import { createRepoMaker } from './content/create-repo-on-push.ts';
import { createDiscovery } from './content/discovery.ts';
import { createManifests } from './content/manifests.ts';
import { createMounts } from './content/mounts.ts';
import { createUploadIds } from './content/upload-ids.ts';
import { createUploads } from './content/uploads.ts';
import { OciError } from './errors.ts';
import { createFence } from './gc/gc-lock.ts';
import { json } from './http/call.ts';
import { createHandler, type Handler } from './http/handler.ts';
import { createPullLog } from './pull-log.ts';

export interface RegistryOptions {
  readonly store: Store;
  readonly blobs: Blobs;
  /** Who sent an `authorization` value; throws UNAUTHENTICATED. */
  readonly authenticate: (authorization: string | undefined) => MaybePromise<Caller>;
  readonly tokens: Tokens;
  readonly methods: readonly Method[];
  readonly operations: Operations;
  readonly publicUrl: () => string;
  readonly requestIdOf: (req: IncomingMessage) => string;
  /** The most bytes of one blob. */
  readonly maxBlobBytes: number;
  readonly pullEvents: boolean;
  /** How long a client may neither send nor take a byte in the middle of a blob. */
  readonly stallMs?: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'observeRequest' | 'inFlight' | 'countDroppedPullEvents'>;
}

export interface Registry {
  readonly handle: Handler;
  /** Writes down what is left to write; call it when nothing is served any more. */
  close(): Promise<void>;
}

const STALL_MS = 60_000;

/** Where the blobs of a data directory are. */
export const registryDirectory = (dataDir: string): string => join(dataDir, 'registry');

/** The OCI distribution API: a second front door to the same people, permissions and repos as the API has. */
export async function createRegistry(options: RegistryOptions): Promise<Registry> {
  const { store, blobs, authenticate, tokens, methods, operations, publicUrl, requestIdOf } = options;
  const { maxBlobBytes: maxBytes, pullEvents, stallMs = STALL_MS, clock, log, metrics } = options;
  const db = store.reader;
  const challenges = createChallenges(publicUrl);
  const readCredential = createCredentials({ db, clock, authenticate });
  const permission = createPermission({ db, challenges });
  const inRepo = createRepoMaker({ store, methods, operations });
  const pulls = pullEvents ? createPullLog({ store, log, metrics }) : undefined;
  const mounts = createMounts({ store, challenges, inRepo });
  const fence = await createFence(store, blobs);
  const takeReport = createAttachedReports({ store, log });
  const ids = createUploadIds(await uploadKey(store));

  const { issue } = createTokenEndpoint({ db, tokens, publicUrl });
  const manifests = createManifests({ store, blobs, permission, inRepo, takeReport, pulls });
  const stored = createBlobs({ store, blobs, permission, pulls });
  const uploads = createUploads({ blobs, permission, inRepo, mounts, ids, fence, maxBytes, stallMs });
  const discovery = createDiscovery({ db, permission });

  const handle = createHandler({
    handlers: {
      base: { GET: async () => json(200, {}) },
      token: { GET: issue, POST: issue },
      catalog: { GET: () => Promise.reject(noCatalog()) },
      manifest: { GET: manifests.get, PUT: manifests.put, DELETE: manifests.remove },
      blob: { GET: stored.get, HEAD: stored.head, DELETE: stored.remove },
      uploads: { POST: uploads.begin },
      upload: { GET: uploads.status, PATCH: uploads.append, PUT: uploads.finish, DELETE: uploads.cancel },
      tags: { GET: discovery.tags },
      referrers: { GET: discovery.referrers },
    },
    readCredential,
    challenges,
    requestIdOf,
    stallMs,
    clock,
    log,
    metrics,
  });
  return { handle, close: async () => pulls?.close() };
}

const noCatalog = (): OciError =>
  new OciError('UNSUPPORTED', 'repositories are listed by the API: GET /registry/v2/repos', { status: 404 });

/** One key for all servers of a database, so that each knows the uploads that others began. */
async function uploadKey(store: Store): Promise<Uint8Array> {
  const mine = randomBytes(32).toString('base64');
  return Buffer.from(await store.write((tx) => putSettingIfAbsent(tx, 'registry.upload-key', mine)), 'base64');
}
