import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { DescMethod } from '@bufbuild/protobuf';
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { IncomingTrace } from '../base/tracing.ts';
import type { Blobs } from '../blobs/blobs.ts';
import { ociFiles } from '../contract/gen/files.js';
import { DistributionService } from '../contract/gen/wharfinger/oci/v1/distribution_pb.js';
import { methodId } from '../contract/method.ts';
import { methodTable } from '../contract/method-table.ts';
import type { AccessTokens } from '../identity/tokens/access-tokens.ts';
import type { RequestRates } from '../limits/request-rates.ts';
import type { RunNested } from '../pipeline/nested.ts';
import type { CallObserver } from '../pipeline/observe.ts';
import type { Authenticate } from '../pipeline/pipeline.ts';
import { putSettingIfAbsent } from '../store/settings.ts';
import type { Store } from '../store/store.ts';
import { createChallenges } from './auth/challenge.ts';
import { createCredentialReader } from './auth/credentials.ts';
import { createRepositoryAccess } from './auth/repository-access.ts';
import { createTokenEndpoint } from './auth/token-endpoint.ts';
import type { FormLimits } from './auth/token-form.ts';
import { createAttachedReports } from './content/attached-reports.ts';
import { createBlobEndpoints } from './content/blob-endpoints.ts';
import { createWriteToRepo } from './content/create-repo-on-push.ts';
import { createDiscoveryEndpoints } from './content/discovery-endpoints.ts';
import { createManifestEndpoints } from './content/manifest-endpoints.ts';
import { createMounts } from './content/mounts.ts';
import { createStoredBlobs } from './content/stored-blobs.ts';
import { createTagHistoryEndpoint } from './content/tag-history-endpoint.ts';
import { createUploadEndpoints } from './content/upload-endpoints.ts';
import { createUploadIds } from './content/upload-ids.ts';
import { createUploadQuota } from './content/upload-quota.ts';
import { OciError } from './errors.ts';
import { createGcLock } from './gc/gc-lock.ts';
import { json } from './http/call.ts';
import { createHandler, type Endpoint, type Handler } from './http/handler.ts';
import { createPullLog } from './pull-log.ts';

export interface RegistryOptions {
  readonly store: Store;
  readonly blobs: Blobs;
  readonly authenticate: Authenticate;
  readonly accessTokens: AccessTokens;
  readonly runNested: RunNested;
  /** The URL that tokens name. */
  readonly publicUrl: string;
  /** The URL of this server as the client of a request knows it. */
  readonly urlOf: (req: IncomingMessage) => string;
  /** The path of a request before `/v2/`, such as `/wharf`, or an empty text. */
  readonly pathPrefixOf: (req: IncomingMessage) => string;
  readonly requestIdOf: (req: IncomingMessage) => string;
  readonly addressOf: (req: IncomingMessage) => string;
  /** Absent without tracing. */
  readonly traceOf?: ((req: IncomingMessage) => IncomingTrace | undefined) | undefined;
  /** The size limit of a blob. */
  readonly maxBlobBytes: number;
  /** Whether the bytes of an organization are limited. */
  readonly isStorageLimited: boolean;
  readonly pullEvents: boolean;
  /** How long a client may neither send nor read a byte in the middle of a blob. */
  readonly stallMs?: number;
  /** For the form of a token request. */
  readonly formLimits: FormLimits;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: CallObserver;
  readonly rates: RequestRates;
  readonly metrics: Pick<Metrics, 'countDroppedPullEvents' | 'countDamagedBlob'>;
}

export interface Registry {
  readonly handle: Handler;
  /** Writes the pull events that are waiting. Call it after the last request. */
  close(): Promise<void>;
}

const STALL_MS = 60_000;

/** The OCI distribution API. Its methods are declared in the contract and take the same steps as all others. */
export async function createRegistry(options: RegistryOptions): Promise<Registry> {
  const { store, blobs, authenticate, accessTokens, runNested, publicUrl, requestIdOf, addressOf, pathPrefixOf } =
    options;
  const {
    maxBlobBytes: maxBytes,
    isStorageLimited,
    pullEvents,
    stallMs = STALL_MS,
    clock,
    log,
    observer,
    rates,
    metrics,
  } = options;
  const challenges = createChallenges(publicUrl, options.urlOf);
  const access = createRepositoryAccess(challenges);
  const writeToRepo = createWriteToRepo({ store, access, runNested });
  const pulls = pullEvents ? createPullLog({ store, log, metrics }) : undefined;
  const storedBlobs = createStoredBlobs({ blobs, log, metrics });
  const mounts = createMounts({ challenges, writeToRepo, blobs: storedBlobs });
  const gcLock = await createGcLock(store, blobs);
  const storeReport = createAttachedReports({ store, log });
  const ids = createUploadIds(await uploadKey(store));

  const issueToken = createTokenEndpoint({ accessTokens, publicUrl });
  const manifests = createManifestEndpoints({ store, blobs, access, writeToRepo, runNested, storeReport, pulls });
  const stored = createBlobEndpoints({ store, blobs: storedBlobs, access, pulls });
  const quota = createUploadQuota({ store, blobs, isStorageLimited });
  const uploads = createUploadEndpoints({
    ...{ blobs, access, writeToRepo, mounts, ids, gcLock, quota, maxBytes, stallMs },
  });
  const discovery = createDiscoveryEndpoints(access);
  const tagHistory = createTagHistoryEndpoint(access);

  const rpc = DistributionService.method;
  const handle = createHandler({
    endpoints: {
      version: { GET: endpoint(rpc.getVersion, async () => json(200, {})) },
      token: { GET: endpoint(rpc.issueToken, issueToken), POST: endpoint(rpc.issueToken, issueToken) },
      catalog: { GET: endpoint(rpc.listRepositories, () => Promise.reject(noCatalog())) },
      manifest: {
        GET: endpoint(rpc.getManifest, manifests.getByDigest),
        PUT: endpoint(rpc.putManifest, manifests.putByDigest),
        DELETE: endpoint(rpc.deleteManifest, manifests.deleteByDigest),
      },
      'tagged manifest': {
        GET: endpoint(rpc.getManifestByTag, manifests.getByTag),
        PUT: endpoint(rpc.putManifest, manifests.putByTag),
        DELETE: endpoint(rpc.deleteManifestByTag, manifests.deleteByTag),
      },
      blob: {
        GET: endpoint(rpc.getBlob, stored.get),
        HEAD: endpoint(rpc.getBlob, stored.head),
        DELETE: endpoint(rpc.deleteBlob, stored.remove),
      },
      uploads: { POST: endpoint(rpc.beginUpload, uploads.begin) },
      upload: {
        GET: endpoint(rpc.getUpload, uploads.status),
        PATCH: endpoint(rpc.appendUpload, uploads.append),
        PUT: endpoint(rpc.finishUpload, uploads.finish),
        DELETE: endpoint(rpc.cancelUpload, uploads.cancel),
      },
      tags: { GET: endpoint(rpc.listRepositoryTags, discovery.tags) },
      'tag history': { GET: endpoint(rpc.listTagHistory, tagHistory) },
      referrers: { GET: endpoint(rpc.listReferrers, discovery.referrers) },
    },
    db: store.reader,
    readCredential: createCredentialReader(authenticate),
    challenges,
    requestIdOf,
    addressOf,
    pathPrefixOf,
    traceOf: options.traceOf,
    stallMs,
    formLimits: options.formLimits,
    clock,
    observer,
    rates,
  });
  return { handle, close: async () => pulls?.close() };
}

const methods = new Map(methodTable(ociFiles).map((method) => [method.id, method]));

function endpoint<R>(desc: DescMethod, handle: Endpoint<R>['handle']): Endpoint<R> {
  const method = methods.get(methodId(desc));
  if (!method) throw new Error(`contract: there is no method ${methodId(desc)}`);
  return { method, handle };
}

const noCatalog = (): OciError =>
  new OciError('UNSUPPORTED', 'this registry has no catalog; list repositories with GET /registry/v2/repos', {
    status: 404,
  });

/** The same key for all servers of a database, so that each accepts the upload ids of the others. */
async function uploadKey(store: Store): Promise<Uint8Array> {
  const newKey = randomBytes(32).toString('base64');
  return Buffer.from(await store.write((tx) => putSettingIfAbsent(tx, 'registry.upload-key', newKey)), 'base64');
}
