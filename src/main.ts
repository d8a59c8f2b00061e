import { randomBytes, randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { anonymousCaller } from './access/caller.ts';
import { createGrantCache } from './access/grant-cache.ts';
import { type Clock, systemClock } from './base/clock.ts';
import { ApiError, Code } from './base/errors.ts';
import { createLogger, type Log } from './base/log.ts';
import { createMetrics, type Metrics } from './base/metrics.ts';
import { open, seal } from './base/secretbox.ts';
import { version } from './base/version.ts';
import { openFilesystemBlobs } from './blobs/filesystem.ts';
import { createCompatOperations } from './compat/compat.ts';
import type { Config } from './config.ts';
import { files, methodTable, v2Files } from './contract/method-table.ts';
import { v2beta1Files, withV2beta1 } from './contract/v2beta1.ts';
import { createDelivery } from './delivery/delivery.ts';
import { sinkProblem } from './delivery/sink-url.ts';
import { createOperations } from './domains/domains.ts';
import { syncBuiltinRoles } from './domains/iam/roles/sync-builtin-roles.ts';
import { createBlobReader } from './domains/registry/manifests/read-blob.ts';
import { createFederatedAuthenticator, createUnregisteredVerifier } from './identity/federation/federated-login.ts';
import { createIssuerKeys } from './identity/federation/issuer-keys.ts';
import { createFederatedTokenVerifier } from './identity/federation/verify-token.ts';
import { createAuthenticator } from './identity/login/authenticate.ts';
import { createLastSeenRecorder } from './identity/login/last-seen.ts';
import { openMasterKey } from './identity/master-key.ts';
import { fetchJson } from './identity/outgoing/fetch-json.ts';
import { bootstrap } from './identity/owner/bootstrap.ts';
import { createTokenIssuer } from './identity/sts/token-issuer.ts';
import { createRegistry, registryDirectory } from './oci/registry.ts';
import { createNestedRunner } from './pipeline/nested.ts';
import { createCallObserver } from './pipeline/observe.ts';
import { createPipeline } from './pipeline/pipeline.ts';
import { createPageTokens } from './resource/list/page-token.ts';
import { withCommitHook } from './store/commit-hook.ts';
import { instrumentStore } from './store/instrumented.ts';
import { openStore } from './store/open.ts';
import { putSettingIfAbsent } from './store/settings.ts';
import type { Store } from './store/store.ts';
import { createGrpcServer } from './transport/grpc/grpc.ts';
import { createListener } from './transport/listener.ts';
import { createOidcDiscovery } from './transport/oidc-discovery.ts';
import { createDocsHandler } from './transport/openapi/handler.ts';
import { createOperationalEndpoints } from './transport/operational-endpoints.ts';
import { requestIdOf } from './transport/request-id.ts';
import { createRestHandler } from './transport/rest/handler.ts';

export interface Server {
  /** Where it can be reached, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly organization: { readonly uid: string; readonly name: string };
  /** Whether this start created the organization and its owner. */
  readonly firstStart: boolean;
  /** Finishes running requests, then closes the database. */
  stop(): Promise<void>;
}

export interface StartOptions {
  readonly log?: Log;
  readonly clock?: Clock;
  /** Where connections come from, unless this process listens itself. */
  readonly connections?: Connections;
  /** What `/metrics` shows, where this process is not all of the server. */
  readonly publishMetrics?: (own: Metrics) => Pick<Metrics, 'contentType' | 'text'>;
}

/** Connections at a port that somebody else listens at. Answers the port. */
export type Connections = (accept: (socket: Socket) => void) => Promise<number>;

/** Puts the house together, from the database up to the port. */
export async function startServer(config: Config, options: StartOptions = {}): Promise<Server> {
  const { log = createLogger({ level: config.logLevel }), clock = systemClock, publishMetrics, connections } = options;
  const metrics = createMetrics();
  const opened = await openStore({ dataDir: config.data, databaseUrl: config.databaseUrl, log });
  const store = instrumentStore(opened, metrics);
  try {
    return await serve(config, store, { ...metrics, ...publishMetrics?.(metrics) }, log, clock, connections);
  } catch (error) {
    await store.close();
    throw error;
  }
}

async function serve(
  config: Config,
  quiet: Store,
  metrics: Metrics,
  log: Log,
  clock: Clock,
  connections?: Connections,
): Promise<Server> {
  let wakeDelivery = (): void => {};
  const store = withCommitHook(quiet, () => wakeDelivery());
  await syncBuiltinRoles(store, clock);
  const { organization, firstStart } = await bootstrap(store, config.data, config.org, clock);
  const masterKey = await openMasterKey(store, { dataDir: config.data, configured: config.masterKey });
  const publicUrl = () => url;
  const verifier = createFederatedTokenVerifier({
    issuerKeys: createIssuerKeys({
      fetchJson: (address) => fetchJson(address, { allowPrivate: config.allowPrivateIssuers }),
      clock,
      log,
    }),
    clock,
  });
  const upstream = { db: store.reader, verifier, publicUrl };
  const issuer = await createTokenIssuer({
    store,
    masterKey,
    clock,
    publicUrl,
    authenticateFederated: createFederatedAuthenticator(upstream),
    verifyUnregistered: createUnregisteredVerifier(upstream),
  });
  const authenticate = createAuthenticator({
    db: store.reader,
    clock,
    accessTokens: issuer.accessTokens,
    authenticateFederated: createFederatedAuthenticator(upstream),
    grantCache: createGrantCache(store.reader),
    publicUrl,
    recordLastSeen: createLastSeenRecorder({ store, clock, log }),
  });
  const methods = withV2beta1(methodTable(files));
  const blobs = await openFilesystemBlobs(registryDirectory(config.data), { clock });
  const tokens = createPageTokens(await pageTokenKey(store));
  const domains = {
    ...createOperations(tokens, {
      seal: (secret, context) => seal(masterKey, secret, context),
      publicUrl,
      publicAdvisoryGroups: config.publicAdvisoryGroups,
      sinkProblem: (sink) => sinkProblem(sink, config.allowInsecureSinks),
    }),
    ...issuer.operations,
  };
  const earlier = createCompatOperations(domains, { pageTokens: tokens, readBlob: createBlobReader(blobs) });
  const operations = { ...domains, ...earlier };
  const observer = createCallObserver({ log, metrics });
  const call = createPipeline({
    operations,
    store,
    authenticate,
    anonymous: anonymousCaller,
    clock,
    timeoutMs: config.requestTimeout,
    observer,
  });

  const registry = await createRegistry({
    store,
    blobs,
    authenticate,
    accessTokens: issuer.accessTokens,
    runNested: createNestedRunner(methods, operations),
    publicUrl,
    requestIdOf: (req) => requestIdOf((name) => req.headers[name]?.toString(), randomUUID),
    maxBlobBytes: config.maxBlob,
    pullEvents: config.pullEvents,
    clock,
    log,
    observer,
    metrics,
  });

  let stopping = false;
  let url = '';
  const { serviceDomain } = config;
  const wire = { methods, call, serviceDomain, newRequestId: randomUUID, log };
  const handlers = [
    createOperationalEndpoints({ metrics, ready: () => (stopping ? Promise.reject(shuttingDown) : store.ping()) }),
    createDocsHandler({ methods, version, serviceUrl: publicUrl }),
    createOidcDiscovery({ issuer: publicUrl, publicKeys: issuer.publicKeys }),
    registry.handle,
    createRestHandler({ ...wire, cors: config.corsOrigins }),
  ];
  const listener = createListener({
    http: (req, res, arrival) => void handlers.some((handle) => handle(req, res, arrival)),
    grpc: createGrpcServer({ ...wire, files: () => [...files, ...v2beta1Files(v2Files)] }),
    serviceDomain,
    newRequestId: randomUUID,
    log,
    ...(config.tls && { tls: config.tls }),
  });
  const { host, port } = config.listen;
  const bound = connections ? await connections(listener.accept) : (await listener.listen(host, port)).port;
  url = config.publicUrl ?? addressUrl(config, bound);
  const delivery = createDelivery({
    // What it writes itself is no news to it.
    store: quiet,
    accessTokens: issuer.accessTokens,
    unseal: (sealed, context) => open(masterKey, sealed, context).toString(),
    publicUrl,
    allowInsecure: config.allowInsecureSinks,
    schedule: config.deliverySchedule,
    timeoutMs: config.deliveryTimeout,
    giveUpMs: config.deliveryGiveUp,
    retentionMs: config.eventRetention,
    clock,
    log,
    metrics,
  });
  wakeDelivery = delivery.wake;
  log.info({ url, organization: organization.uid, version }, 'serving');

  return {
    url,
    organization,
    firstStart,
    async stop() {
      stopping = true;
      await listener.stop();
      await registry.close();
      await delivery.stop();
      await store.close();
      log.info({}, 'stopped');
    },
  };
}

const shuttingDown = new ApiError(Code.UNAVAILABLE, 'Unavailable: the server is shutting down');

/** One key for all servers of a database, so that each accepts the tokens of the others. */
async function pageTokenKey(store: Store): Promise<Uint8Array> {
  const mine = randomBytes(32).toString('base64');
  return Buffer.from(await store.write((tx) => putSettingIfAbsent(tx, 'page-token.key', mine)), 'base64');
}

/** A wildcard address is no place to connect to; this machine is. */
function addressUrl({ listen, tls }: Config, port: number): string {
  const host = { '': '127.0.0.1', '0.0.0.0': '127.0.0.1', '::': '[::1]' }[listen.host] ?? listen.host;
  const bracketed = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
  return `${tls ? 'https' : 'http'}://${bracketed}:${port}`;
}
