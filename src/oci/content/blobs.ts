import type { OutgoingHttpHeaders } from 'node:http';
import type { Blobs } from '../../blobs/blobs.ts';
import { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';
import { RegistryError } from '../../domains/registry/errors.ts';
import { type BlobLink, blobLink, linkBlob, unlinkBlob } from '../../domains/registry/manifests/blob-links.ts';
import { manifestNeeding } from '../../domains/registry/manifests/needs.ts';
import type { Store } from '../../store/store.ts';
import type { Permission } from '../auth/permission.ts';
import { isCurrent, lasting } from '../http/caching.ts';
import type { Answer, Call } from '../http/call.ts';
import { rangeOf } from '../http/range.ts';
import type { RouteOf } from '../http/routes.ts';
import { requireDigest } from '../names.ts';
import type { PullLog } from '../pull-log.ts';
import { eventOf } from '../push-pull-events.ts';

export interface BlobsOptions {
  readonly store: Store;
  readonly blobs: Pick<Blobs, 'open' | 'stat'>;
  readonly permission: Permission;
  readonly pulls: PullLog | undefined;
}

type Route = RouteOf<'blob'>;

const PULL = [Capability.CAP_REPO_BLOBS_GET];
const PUSH = [Capability.CAP_MANIFEST_CREATE];
const DELETE = [Capability.CAP_MANIFEST_DELETE];

/** A yes to somebody who pushes must hold until their manifest is there, so a link that is older than this is renewed. */
const RENEW_AFTER_MS = 15 * 60_000;

export function createBlobs({ store, blobs, permission, pulls }: BlobsOptions) {
  async function requireLink(repo: string, digest: string): Promise<BlobLink> {
    const link = await blobLink(store.reader, repo, digest);
    if (!link) throw unknown(digest);
    return link;
  }

  async function get(call: Call, { name, digest: text }: Route): Promise<Answer> {
    const digest = requireDigest(text);
    const repo = await permission.require(call, name, 'pull', PULL);
    const { size } = await requireLink(repo, digest);
    const headers = headersOf(digest);
    if (isCurrent(call.req, digest)) return { status: 304, headers };
    const range = rangeOf(call.req.headers.range, size);
    const reader = await blobs.open(digest, range);
    if (reader.size !== size) {
      await reader.close();
      throw new Error(`the file of ${digest} has ${reader.size} bytes instead of ${size}`);
    }
    const length = { ...headers, 'content-length': reader.length };
    const sent = () => pulls?.record(eventOf('pull', call, { name, repo, digest, type: 'blob' }));
    if (!range) return { status: 200, headers: length, reader, sent };
    const contentRange = `bytes ${range.start}-${range.end}/${size}`;
    return { status: 206, headers: { ...length, 'content-range': contentRange }, reader, sent };
  }

  async function head(call: Call, { name, digest: text }: Route): Promise<Answer> {
    const digest = requireDigest(text);
    const repo = await permission.require(call, name, 'pull', PULL);
    const { size, linked } = await requireLink(repo, digest);
    // Should the file be lost, saying so lets the next push mend it.
    if (!(await blobs.stat(digest))) throw unknown(digest);
    const isOld = call.now - linked > RENEW_AFTER_MS;
    if (isOld && call.credential.caller.can(PUSH, repo)) await renew(repo, digest, call.now);
    return { status: 200, headers: { ...headersOf(digest), 'content-length': size } };
  }

  async function renew(repo: string, digest: string, now: number): Promise<void> {
    await store.write(async (tx) => {
      const link = await blobLink(tx.forUpdate, repo, digest);
      if (!link) throw unknown(digest);
      await linkBlob(tx, repo, digest, link.size, now);
    });
  }

  /** Only from this repo, and only what no manifest of it needs: the bytes go with the last link, by garbage collection. */
  async function remove(call: Call, { name, digest: text }: Route): Promise<Answer> {
    const digest = requireDigest(text);
    const repo = await permission.require(call, name, 'delete', DELETE);
    await store.write(async (tx) => {
      if (!(await blobLink(tx.forUpdate, repo, digest))) throw unknown(digest);
      const manifest = await manifestNeeding(tx, repo, digest);
      if (manifest) throw new RegistryError('UNSUPPORTED', `manifest ${manifest} needs this blob; delete that first`);
      await unlinkBlob(tx, repo, digest);
    });
    return { status: 202 };
  }

  return { get, head, remove };
}

const unknown = (digest: string): RegistryError => new RegistryError('BLOB_UNKNOWN', `there is no blob ${digest} here`);

const headersOf = (digest: string): OutgoingHttpHeaders => ({
  'content-type': 'application/octet-stream',
  'docker-content-digest': digest,
  'accept-ranges': 'bytes',
  ...lasting(digest, 'for ever'),
});
