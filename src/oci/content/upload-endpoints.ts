import type { OutgoingHttpHeaders } from 'node:http';
import { bodyLengthOf } from '../../base/body-length.ts';
import { rootOf } from '../../base/uid.ts';
import type { Blobs, ByteRange } from '../../blobs/blobs.ts';
import { BlobError } from '../../blobs/errors.ts';
import { linkBlob } from '../../domains/registry/manifests/blob-links.ts';
import { closeUpload } from '../../domains/registry/storage/open-uploads.ts';
import type { PushTarget, RepositoryAccess } from '../auth/repository-access.ts';
import { OciError } from '../errors.ts';
import type { GcLock } from '../gc/gc-lock.ts';
import { bodyChunks, freeChunk, hasBody } from '../http/body.ts';
import type { OciCall, OciResponse } from '../http/call.ts';
import { chunkRangeOf } from '../http/range.ts';
import type { RouteOf } from '../http/routes.ts';
import { requireDigest } from '../names.ts';
import { registryEvent } from '../push-pull-events.ts';
import type { WriteToRepo } from './create-repo-on-push.ts';
import type { Mounts } from './mounts.ts';
import type { UploadIds } from './upload-ids.ts';
import { quotaErrorIn, type UploadQuota } from './upload-quota.ts';

export interface UploadEndpointsOptions {
  readonly blobs: Blobs;
  readonly access: RepositoryAccess;
  readonly writeToRepo: WriteToRepo;
  readonly mounts: Mounts;
  readonly ids: UploadIds;
  readonly gcLock: GcLock;
  readonly quota: UploadQuota;
  /** The size limit of a blob. */
  readonly maxBytes: number;
  /** How long a client may send nothing in the middle of an upload. */
  readonly stallMs: number;
}

/** An upload that this caller has begun in this repo. */
interface Upload {
  readonly id: string;
  readonly target: PushTarget;
  readonly location: string;
}

export function createUploadEndpoints({
  blobs,
  access,
  writeToRepo,
  mounts,
  ids,
  gcLock,
  quota,
  maxBytes,
  stallMs,
}: UploadEndpointsOptions) {
  /** Begins an upload, takes a whole blob at once, or mounts one from another repo. */
  async function begin(call: OciCall, { name }: RouteOf<'uploads'>): Promise<OciResponse> {
    const target = await access.requirePushTarget(call, name, call.method.capabilities);
    const mounted = await mounts.mount(call, target);
    if (mounted !== undefined) return created(name, mounted);
    const digest = call.query.get('digest');
    if (digest !== null) return receiveWhole(call, target, requireDigest(digest));
    const repo =
      target.repo ?? (await writeToRepo(call, target, async (_ctx, created) => ({ result: created, events: [] })));
    const id = await quota.begin(rootOf(target.group), call.now);
    return { status: 202, headers: progress({ id, target, location: locationOf(call, target, repo, id) }, 0) };
  }

  async function receiveWhole(call: OciCall, target: PushTarget, digest: string): Promise<OciResponse> {
    refuseLarge(0, bodyLengthOf(call.req));
    const id = await quota.begin(rootOf(target.group), call.now);
    try {
      await receive(call, target, id, 0);
      await finishBlob(call, target, id, digest);
    } catch (error) {
      // No client knows its id, so it cannot be continued.
      await quota.cancel(id).catch(() => {});
      throw error;
    }
    return created(target.name, digest);
  }

  async function append(call: OciCall, route: RouteOf<'upload'>): Promise<OciResponse> {
    const upload = await requireUpload(call, route);
    const end = await forgettingDeleted(upload, () => appendChunk(call, upload));
    return { status: 202, headers: progress(upload, end) };
  }

  async function finish(call: OciCall, route: RouteOf<'upload'>): Promise<OciResponse> {
    const digest = requireDigest(call.query.get('digest') ?? '');
    const upload = await requireUpload(call, route);
    await forgettingDeleted(upload, async () => {
      if (hasBody(call.req)) await appendChunk(call, upload);
      await finishBlob(call, upload.target, upload.id, digest);
    });
    return created(route.name, digest);
  }

  /** Some failures delete the upload. It then no longer counts. */
  async function forgettingDeleted<T>({ id }: Upload, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      // If this fails too, garbage collection does it.
      await quota.forgetIfDeleted(id).catch(() => {});
      throw error;
    }
  }

  async function status(call: OciCall, route: RouteOf<'upload'>): Promise<OciResponse> {
    const upload = await requireUpload(call, route);
    return { status: 204, headers: progress(upload, await offsetOf(upload)) };
  }

  async function cancel(call: OciCall, route: RouteOf<'upload'>): Promise<OciResponse> {
    const { id } = await requireUpload(call, route);
    if (!(await quota.cancel(id))) throw unknown();
    return { status: 204 };
  }

  async function requireUpload(call: OciCall, { name, id: reference }: RouteOf<'upload'>): Promise<Upload> {
    const target = await access.requirePushTarget(call, name, call.method.capabilities);
    if (target.repo === undefined) throw unknown();
    const id = ids.read(reference, target.repo, call.caller.uid);
    if (id === undefined) throw unknown();
    return { id, target, location: locationOf(call, target, target.repo, id) };
  }

  const locationOf = ({ caller }: OciCall, { name }: PushTarget, repo: string, id: string): string =>
    `/v2/${name}/blobs/uploads/${ids.write(id, repo, caller.uid)}`;

  async function offsetOf({ id }: Upload): Promise<number> {
    const offset = await blobs.offset(id);
    if (offset === undefined) throw unknown();
    return offset;
  }

  /** Appends the body of the request, at the offset that it names or at the end. Returns the new length of the upload. */
  async function appendChunk(call: OciCall, upload: Upload): Promise<number> {
    const length = bodyLengthOf(call.req);
    const range = chunkRangeOf(call.req.headers['content-range'], length);
    const offset = range?.start ?? (await offsetOf(upload));
    refuseLarge(offset, length);
    try {
      const end = await receive(call, upload.target, upload.id, offset, range);
      if (range && end !== range.end + 1) throw new OciError('SIZE_INVALID', 'Content-Range is longer than the body');
      return end;
    } catch (error) {
      throw error instanceof BlobError && error.failure.reason === 'offset'
        ? outOfOrder(upload, error.failure.offset, error.message)
        : error;
    }
  }

  /** Has no time limit for the whole: a layer of many gigabytes on a slow line takes long. */
  async function receive(
    { req, bodyTimeout, now }: OciCall,
    { group }: PushTarget,
    id: string,
    offset: number,
    range?: ByteRange,
  ): Promise<number> {
    const limit = Math.min(maxBytes, range ? range.end + 1 : Infinity);
    const counted = { id, organization: rootOf(group), now };
    const body = quota.reserving(bodyChunks(req, stallMs), counted, offset, bodyLengthOf(req));
    bodyTimeout.suspend();
    try {
      return await blobs.append(id, offset, body, { limit, done: freeChunk });
    } catch (error) {
      throw quotaErrorIn(error);
    } finally {
      bodyTimeout.resume();
    }
  }

  function refuseLarge(offset: number, length = 0): void {
    if (offset + length > maxBytes) throw new BlobError({ reason: 'large', limit: maxBytes });
  }

  /** Turns an upload into a blob and links it to the repo. */
  async function finishBlob(call: OciCall, target: PushTarget, id: string, digest: string): Promise<void> {
    const epoch = await gcLock.epoch();
    const { size } = await blobs.finish(id, digest);
    await writeToRepo(call, target, async ({ db }, repo) => {
      await gcLock.requireBlob(db, epoch, digest);
      await closeUpload(db, id);
      await linkBlob(db, repo, digest, size, call.now);
      const event = registryEvent(call, { name: target.name, repo, digest, type: 'blob' });
      return { result: undefined, events: [event] };
    });
  }

  return { begin, append, finish, status, cancel };
}

const created = (name: string, digest: string): OciResponse => ({
  status: 201,
  headers: { location: `/v2/${name}/blobs/${digest}`, 'docker-content-digest': digest },
});

/** The range that has arrived. For an empty upload clients expect `0-0`, as for one byte. */
const progress = ({ id, location }: Upload, end: number): OutgoingHttpHeaders => ({
  location,
  range: `0-${Math.max(0, end - 1)}`,
  'docker-upload-uuid': id,
});

const unknown = (): BlobError => new BlobError({ reason: 'unknown', kind: 'upload' });

const outOfOrder = (upload: Upload, offset: number, message: string): OciError =>
  new OciError('BLOB_UPLOAD_INVALID', message, { status: 416, headers: progress(upload, offset) });
