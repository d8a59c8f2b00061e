import type { OutgoingHttpHeaders } from 'node:http';
import { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';
import { RegistryError } from '../../domains/registry/errors.ts';
import { type BlobLink, findBlobLink, linkBlob, unlinkBlob } from '../../domains/registry/manifests/blob-links.ts';
import { findManifestLinkedTo } from '../../domains/registry/manifests/manifest-links.ts';
import { recordingEvents, runInTransaction } from '../../pipeline/run-write.ts';
import type { Reader, Store } from '../../store/store.ts';
import type { RepositoryAccess } from '../auth/repository-access.ts';
import { cacheHeaders, isNotModified } from '../http/caching.ts';
import type { OciCall, OciResponse } from '../http/call.ts';
import { rangeOf } from '../http/range.ts';
import type { RouteOf } from '../http/routes.ts';
import { requireDigest } from '../names.ts';
import type { PullLog } from '../pull-log.ts';
import { pullEvent, registryEvent } from '../push-pull-events.ts';
import type { StoredBlobs } from './stored-blobs.ts';

export interface BlobEndpointsOptions {
  readonly store: Store;
  readonly blobs: StoredBlobs;
  readonly access: RepositoryAccess;
  readonly pulls: PullLog | undefined;
}

type Route = RouteOf<'blob'>;

const PUSH = [Capability.CAP_MANIFEST_CREATE];

/**
 * After HEAD has told a client that a blob exists, the client does not upload it. Garbage collection must then keep the
 * blob until its manifest arrives, so a link that is older than this is renewed.
 */
const RENEW_AFTER_MS = 15 * 60_000;

export function createBlobEndpoints({ store, blobs, access, pulls }: BlobEndpointsOptions) {
  async function requireLink(db: Reader, repo: string, digest: string): Promise<BlobLink> {
    const link = await findBlobLink(db, repo, digest);
    if (!link) throw unknown(digest);
    return link;
  }

  async function get(call: OciCall, { name, digest: text }: Route): Promise<OciResponse> {
    const digest = requireDigest(text);
    const repo = await access.require(call, name, 'pull');
    const { size } = await requireLink(call.db, repo, digest);
    const headers = headersOf(digest);
    if (isNotModified(call.req, digest)) return { status: 304, headers };
    const range = rangeOf(call.req.headers.range, size);
    const reader = await blobs.open(digest, size, range);
    const length = { ...headers, 'content-length': reader.length };
    const sent = () => pulls?.record(pullEvent(call, { name, repo, digest, type: 'blob' }));
    if (!range) return { status: 200, headers: length, reader, sent };
    const contentRange = `bytes ${range.start}-${range.end}/${size}`;
    return { status: 206, headers: { ...length, 'content-range': contentRange }, reader, sent };
  }

  async function head(call: OciCall, { name, digest: text }: Route): Promise<OciResponse> {
    const digest = requireDigest(text);
    const repo = await access.require(call, name, 'pull');
    const { size, linked } = await requireLink(call.db, repo, digest);
    // If the file is lost or damaged, a 404 makes the client upload it again.
    if (!(await blobs.isStored(digest, size))) throw unknown(digest);
    const isOld = call.now - linked > RENEW_AFTER_MS;
    if (isOld && call.caller.can(PUSH, repo)) await renewLink(repo, digest, call.now);
    return { status: 200, headers: { ...headersOf(digest), 'content-length': size } };
  }

  async function renewLink(repo: string, digest: string, now: number): Promise<void> {
    await store.write(async (tx) => {
      const link = await requireLink(tx.forUpdate, repo, digest);
      await linkBlob(tx, repo, digest, link.size, now);
    });
  }

  /** Removes the link of this repo only. Garbage collection deletes the file after its last link. */
  async function remove(call: OciCall, { name, digest: text }: Route): Promise<OciResponse> {
    const digest = requireDigest(text);
    const repo = await access.require(call, name, 'delete');
    const work = recordingEvents(async ({ db }) => {
      await requireLink(db.forUpdate, repo, digest);
      const manifest = await findManifestLinkedTo(db, repo, digest);
      if (manifest) {
        throw new RegistryError('UNSUPPORTED', `manifest ${manifest} needs this blob; delete the manifest first`);
      }
      await unlinkBlob(db, repo, digest);
      return { result: undefined, events: [registryEvent(call, { name, repo, digest, type: 'blob' })] };
    });
    await runInTransaction(store, call, work, {
      authorize: (ctx) => access.require({ ...call, ...ctx }, name, 'delete'),
    });
    return { status: 202 };
  }

  return { get, head, remove };
}

const unknown = (digest: string): RegistryError =>
  new RegistryError('BLOB_UNKNOWN', `the repository has no blob ${digest}`);

const headersOf = (digest: string): OutgoingHttpHeaders => ({
  'content-type': 'application/octet-stream',
  'docker-content-digest': digest,
  'accept-ranges': 'bytes',
  ...cacheHeaders(digest, 'digest'),
});
