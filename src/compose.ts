import { randomBytes, randomUUID } from 'node:crypto';
import type { DescFile } from '@bufbuild/protobuf';
import { anonymousCaller } from './access/create-caller.ts';
import { createGrantCache } from './access/grant-cache.ts';
import { createBackupGauges } from './backup/gauges.ts';
import { startBackupSchedule } from './backup/schedule.ts';
import type { Clock } from './base/clock.ts';
import { ApiError, Code } from './base/errors.ts';
import type { Log } from './base/log.ts';
import { createMemoryBudget } from './base/memory-budget.ts';
import type { Metrics } from './base/metrics.ts';
import { isReadableByOthers } from './base/private-files.ts';
import { type Tracing, traced } from './base/tracing.ts';
import { version } from './base/version.ts';
import { openFilesystemBlobs } from './blobs/filesystem.ts';
import { createCompatOperations } from './compat/compat.ts';
import type { Config } from './config.ts';
import { isLoopback } from './config-values.ts';
import { eventReaders } from './contract/event-readers.ts';
import { ociFiles, v2Files } from './contract/gen/files.js';
import { files, methodTable } from './contract/method-table.ts';
import { v2beta1Files, withV2beta1 } from './contract/v2beta1.ts';
import { createDelivery } from './delivery/delivery.ts';
import { sinkProblem } from './delivery/sink-url.ts';
import { createOperations, resources } from './domains/domains.ts';
import { indexPatterns } from './domains/iam/identities/index-patterns.ts';
import { syncBuiltinRoles } from './domains/iam/roles/sync-builtin-roles.ts';
import { createBlobReader } from './domains/registry/manifests/read-blob.ts';
import { claimDataDirectory, requireOwnDatabase } from './identity/data-directory.ts';
import {
  createFederatedAuthenticator,
  createFederatedMatcher,
  createUnregisteredVerifier,
} from './identity/federation/federated-login.ts';
import { createIssuerKeys } from './identity/federation/issuer-keys.ts';
import { createFederatedTokenVerifier } from './identity/federation/verify-token.ts';
import { createAuthenticator } from './identity/login/authenticate.ts';
import { createLastSeenRecorder } from './identity/login/last-seen.ts';
import { createMakerAccess } from './identity/login/maker-access.ts';
import { sessionOperations } from './identity/login/session-service.ts';
import { openMasterKeys } from './identity/master-key.ts';
import { fetchJson } from './identity/outgoing/fetch-json.ts';
import { tracedFetchJson } from './identity/outgoing/traced-fetch.ts';
import { bootstrap } from './identity/owner/bootstrap.ts';
import { missingOwner, readOwner } from './identity/owner/owner-key.ts';
import { createTokenIssuer } from './identity/sts/token-issuer.ts';
import { createQuotas } from './limits/quotas.ts';
import { createRequestRates } from './limits/request-rates.ts';
import { createServerGauges } from './monitoring/server-gauges.ts';
import { createStorageGauges } from './monitoring/storage-gauges.ts';
import { createRegistry } from './oci/registry.ts';
import { registryDirectory, requireRegistryDirectory } from './oci/registry-directory.ts';
import { scheduleVerification } from './oci/verify/scheduled-verification.ts';
import { createNestedRunner } from './pipeline/nested.ts';
import { createCallObserver } from './pipeline/observe.ts';
import { createPipeline } from './pipeline/pipeline.ts';
import { createIndexBuilder } from './resource/index/index-builder.ts';
import { createPageTokens } from './resource/list/page-token.ts';
import { createServerAddress, urlOf } from './server-address.ts';
import { quotaLimitsOf, ratesOf } from './server-limits.ts';
import { stopTimesOf } from './stop-times.ts';
import { createCommitSignal, withCommitSignal } from './store/commit-signal.ts';
import { putSettingIfAbsent } from './store/settings.ts';
import type { Store } from './store/store.ts';
import { withQuotas } from './store/with-quotas.ts';
import { loadGrpcOnFirstUse } from './transport/grpc/load-on-first-use.ts';
import { createIncomingTrace } from './transport/incoming-trace.ts';
import type { Limits } from './transport/limits.ts';
import { createOidcDiscovery } from './transport/oidc-discovery.ts';
import { createDocsHandler } from './transport/openapi/handler.ts';
import { createOperationalEndpoints } from './transport/operational-endpoints.ts';
import { createOperationsRouter } from './transport/operations-router.ts';
import type { Port } from './transport/port.ts';
import { createProtocolRouter, type ProtocolRouter } from './transport/protocol-router.ts';
import { requestIdOf } from './transport/request-id.ts';
import { createRestHandler } from './transport/rest/handler.ts';
import { type TlsFiles, type TlsFileWatch, watchTlsFiles } from './transport/tls-files.ts';

export interface Server {
  /** The public URL, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  /** The URL on this machine. */
  readonly localUrl: string;
  /** The URL of the operations port, if it has one. */
  readonly operationsUrl: string | undefined;
  readonly organization: { readonly uid: string; readonly name: string };
  /** Whether this start created the organization and its owner. */
  readonly firstStart: boolean;
  /** Applies the settings that need no restart. */
  reload(config: Config): void;
  /** Drains, waits for running requests, then closes the database. */
  stop(): Promise<void>;
}

/** What all parts of the server use. */
export interface Base {
  readonly config: Config;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly tracing: Tracing | undefined;
  readonly limits: Limits;
  readonly port: Port;
  readonly operationsPort: Port | undefined;
  readonly runBackup: ((target: string, signal: AbortSignal) => Promise<void>) | undefined;
  readonly pause: (ms: number) => Promise<unknown>;
}

/** Creates the parts of the server from the database up to the port. Each uses only parts that are created before it. */
export async function compose(base: Base, database: Store): Promise<Server> {
  const { config, log, clock, metrics, tracing, limits, port, operationsPort, runBackup, pause } = base;
  const methods = withV2beta1(methodTable(files));
  const address = createServerAddress(config, port.port, methods);
  const { publicUrl, requestUrl, pathPrefix, clientAddress } = address;
  const { serviceDomain } = config;

  // The database and what a first start creates in it.
  const commits = createCommitSignal();
  const ownWork = withCommitSignal(database, commits);
  await requireOwnDatabase(ownWork.reader, config.data);
  const indexBuilder = createIndexBuilder({ store: database, resources, clock, log });
  await indexBuilder.prepare();
  await syncBuiltinRoles(ownWork, clock);
  await indexPatterns(ownWork, log);
  const { organization, firstStart } = await bootstrap(ownWork, config.data, config.org, clock);
  const { databaseId, isKnown } = await claimDataDirectory(ownWork, config.data, organization.uid);
  if (config.databaseUrl === undefined) await warnAboutOwnerFile(config.data, log);
  const { countRefusal } = metrics;
  const store = withQuotas(ownWork, createQuotas({ limits: quotaLimitsOf(config), clock, countRefusal }));
  const rates = createRequestRates({ ...ratesOf(config), clock, countRefusal });
  const masterKeys = await openMasterKeys(store, {
    dataDir: config.data,
    configured: config.masterKey,
    configuredOld: config.masterKeyOld,
  });
  const directory = registryDirectory(config.data);
  const isSqlite = config.databaseUrl === undefined;
  await requireRegistryDirectory({
    db: store.reader,
    directory,
    databaseId,
    isKnown: isKnown || (isSqlite && !firstStart),
    log,
  });
  const blobs = await openFilesystemBlobs(directory, { clock });

  // Who calls.
  const fetchPermitted = tracing ? tracedFetchJson : fetchJson;
  const fetchIssuer = (address: string) => fetchPermitted(address, { allowPrivate: config.allowPrivateIssuers });
  const issuerKeys = createIssuerKeys({ fetchJson: fetchIssuer, clock, log });
  const verifier = createFederatedTokenVerifier({ issuerKeys, clock, maxLifetimeMs: config.maxTokenLifetime });
  const federation = { db: store.reader, verifier, publicUrl, clock };
  const authenticateFederated = createFederatedAuthenticator(federation);
  const verifyUnregistered = createUnregisteredVerifier(federation);
  const issuer = await createTokenIssuer({
    ...{ store, masterKeys, clock, publicUrl, log },
    signingKeyMaxAgeMs: config.signingKeyRotation,
    ...{ authenticateFederated, verifyUnregistered },
  });
  const { accessTokens } = issuer;
  const grantCache = createGrantCache(store.reader);
  const makerAccess = createMakerAccess({ db: store.reader, grantCache });
  const { authenticate, authenticateForRegistry } = createAuthenticator({
    ...{ db: store.reader, clock, publicUrl, accessTokens, grantCache },
    matchFederated: createFederatedMatcher(federation),
    recordLastSeen: createLastSeenRecorder({ store, clock, log }),
    requireAttempt: rates.requireAttempt,
    requiredTerms: config.requiredTerms,
    termsUrls: config.termsUrls,
  });

  // What every method does, and the steps of every call.
  const pageTokens = createPageTokens(await pageTokenKey(store));
  const v2Operations = createOperations(pageTokens, {
    seal: masterKeys.seal,
    publicUrl,
    publicAdvisoryGroups: config.publicAdvisoryGroups,
    sinkProblem: (sink) => sinkProblem(sink, { allowInsecure: config.allowInsecureSinks, publicUrl }),
    makerAccess,
    allowPrivateIssuers: config.allowPrivateIssuers,
  });
  const domainOperations = {
    ...v2Operations,
    ...issuer.operations,
    ...sessionOperations({ accessTokens, pageTokens }),
  };
  const compatOperations = createCompatOperations(domainOperations, { pageTokens, readBlob: createBlobReader(blobs) });
  const operations = { ...domainOperations, ...compatOperations };
  const observer = createCallObserver({ log, metrics, tracing });
  const call = createPipeline({
    ...{ operations, store, authenticate, anonymous: anonymousCaller, clock, observer, rates, tracing },
    timeoutMs: config.requestTimeout,
  });

  // How calls arrive: each handler takes the paths that are its own, and REST the rest.
  const unauthenticated = createMemoryBudget(limits.unauthenticatedBytes);
  const incomingTrace = tracing && createIncomingTrace(config.trustedProxies);
  const registry = await createRegistry({
    ...{ store, blobs, accessTokens, publicUrl, clock, log, observer, rates, metrics },
    authenticate: traced(tracing, 'authenticate', authenticateForRegistry),
    runNested: createNestedRunner(methods, operations),
    requestIdOf: (req) => requestIdOf((name) => req.headers[name]?.toString(), randomUUID),
    addressOf: ({ socket, headers }) => clientAddress(socket.remoteAddress ?? '', headers),
    urlOf: requestUrl,
    pathPrefixOf: pathPrefix.of,
    traceOf:
      incomingTrace &&
      (({ socket, headers }) =>
        incomingTrace(socket.remoteAddress ?? '', headers.traceparent?.toString(), headers.tracestate?.toString())),
    maxBlobBytes: config.maxBlob,
    isStorageLimited: config.maxOrgStorage !== Infinity,
    pullEvents: config.pullEvents,
    formLimits: { maxBytes: limits.publicRequestBytes, timeoutMs: limits.publicRequestMs, budget: unauthenticated },
  });
  const readiness = createReadiness(store);
  const common = { serviceDomain, newRequestId: randomUUID, log, limits, unauthenticated };
  const wire = { ...common, methods, call, clientAddress, incomingTrace };
  const reflectedFiles = (): readonly DescFile[] => [...files, ...v2beta1Files(v2Files)];
  // Only this machine can reach the port, and no other port has the details.
  const showDetails = operationsPort === undefined && isLoopback(config.listen);
  const handlers = [
    createOperationalEndpoints({ metrics, ready: readiness.check, showDetails }),
    createDocsHandler({ methods, version, serviceUrl: address.documentUrl, pathPrefix: pathPrefix.path }),
    createOidcDiscovery({
      issuer: publicUrl,
      urlOf: address.isFollowing ? requestUrl : undefined,
      publicKeys: issuer.publicKeys,
    }),
    registry.handle,
    createRestHandler({ ...wire, cors: config.corsOrigins }),
  ];
  const router = createProtocolRouter({
    ...common,
    http(req, res, bodyTimeout) {
      pathPrefix.strip(req);
      handlers.some((handle) => handle(req, res, bodyTimeout));
    },
    grpc: loadGrpcOnFirstUse({ ...wire, authenticate, isReflectionPublic: showDetails, files: reflectedFiles }),
    ...(config.tls && { tls: config.tls, hstsSeconds: Math.round(config.hsts / 1000) }),
  });
  const operationsRouter =
    operationsPort &&
    createOperationsRouter({ ...common, methods, metrics, ready: readiness.check, files: reflectedFiles });

  const tlsFiles = config.tls && watchTls(config.tls, { config, log, router });

  // What monitoring sees of the state of the server.
  const storageGauges = createStorageGauges({ store: database, clock, log, byOrganization: config.orgMetrics });
  const certificate = () => tlsFiles?.current().cert;
  metrics.addGauges([
    ...createServerGauges({ store: database, dataDir: config.data, ready: readiness.check, certificate }),
    ...storageGauges.gauges,
    ...createBackupGauges(database, { isScheduled: config.backupTo !== undefined }),
  ]);

  // What happens after a call.
  const delivery = createDelivery({
    // Not the store that signals commits: delivery would wake itself.
    ...{ store: database, commits, accessTokens, publicUrl, clock, log, metrics, tracing, makerAccess },
    eventReaders: eventReaders([...methods, ...methodTable(ociFiles)]),
    limits: { rate: config.sinkRate, newSinkIntervalMs: config.newSinkInterval },
    unseal: async (sealed, context) => (await masterKeys.open(sealed, context)).toString(),
    allowInsecure: config.allowInsecureSinks,
    schedule: config.deliverySchedule,
    timeoutMs: config.deliveryTimeout,
    giveUpMs: config.deliveryGiveUp,
    retentionMs: config.eventRetention,
  });
  const { backupTo } = config;
  const backups =
    backupTo !== undefined && runBackup
      ? startBackupSchedule({
          ...{ store: database, clock, log, intervalMs: config.backupInterval },
          run: (signal) => runBackup(backupTo, signal),
        })
      : undefined;

  const verification = scheduleVerification({
    ...{ db: store.reader, blobs, directory, clock, log, metrics },
    intervalMs: config.verifyInterval,
    bytesPerSecond: config.verifyRate,
  });
  indexBuilder.start();

  port.serve(router.accept);
  if (operationsRouter) operationsPort.serve(operationsRouter.accept);
  const operationsUrl =
    operationsPort && config.operationsListen && urlOf({ listen: config.operationsListen }, operationsPort.port);
  log.info({ url: publicUrl, operationsUrl, organization: organization.uid, version }, 'serving');
  return {
    url: publicUrl,
    localUrl: urlOf(config, port.port),
    operationsUrl,
    organization,
    firstStart,
    reload(next) {
      rates.change(ratesOf(next));
      if (next.tls) tlsFiles?.replace(next.tls);
    },
    async stop() {
      const { drainMs, idleMs, requestsMs } = stopTimesOf(config);
      // Until load balancers notice that the server is not ready, they send requests and open connections.
      readiness.stop();
      const backupsStopped = backups?.stop();
      router.drain();
      if (drainMs > 0) {
        log.info({ drainMs }, 'draining: serving until load balancers notice that the server is not ready');
        await pause(drainMs);
      }
      await port.close();
      log.info({}, 'finishing open requests');
      await router.stop({ idleMs, graceMs: requestsMs });
      tlsFiles?.stop();
      storageGauges.stop();
      await registry.close();
      await verification.stop();
      await delivery.stop();
      await backupsStopped;
      await indexBuilder.stop();
      // Open until now, so that probes see that the server is not ready.
      await operationsPort?.close();
      await operationsRouter?.stop({ graceMs: 0 });
      await store.close();
      await tracing?.stop();
      log.info({}, 'stopped');
    },
  };
}

/** Without the file, the operator cannot log in. With PostgreSQL it may be in the data directory of another server. */
async function warnAboutOwnerFile(dataDir: string, log: Log): Promise<void> {
  try {
    if (!(await readOwner(dataDir))) log.warn({}, missingOwner(dataDir));
  } catch (error) {
    log.warn({}, (error as Error).message);
  }
}

/** Uses a renewed certificate without a restart. */
function watchTls(
  tls: TlsFiles,
  { config, log, router }: Pick<Base, 'config' | 'log'> & { readonly router: Pick<ProtocolRouter, 'useCertificate'> },
): TlsFileWatch {
  if (isReadableByOthers(tls.keyFile)) {
    log.warn(
      { file: tls.keyFile },
      'other users can read the TLS key: run chmod 0600, or set defaultMode in Kubernetes',
    );
  }
  return watchTlsFiles({ tls, intervalMs: config.tlsReload, log, use: router.useCertificate });
}

/** Whether requests can be served: until the server stops, if the database answers. */
function createReadiness(store: Store) {
  let isStopping = false;
  return {
    async check(): Promise<void> {
      if (isStopping) throw new ApiError(Code.UNAVAILABLE, 'Unavailable: the server is shutting down');
      await store.ping();
    },
    stop(): void {
      isStopping = true;
    },
  };
}

/** The same key for all servers of a database, so that each accepts the page tokens of the others. */
async function pageTokenKey(store: Store): Promise<Uint8Array> {
  const newKey = randomBytes(32).toString('base64');
  return Buffer.from(await store.write((tx) => putSettingIfAbsent(tx, 'page-token.key', newKey)), 'base64');
}
