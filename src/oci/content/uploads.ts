import type { OutgoingHttpHeaders } from 'node:http';
import type { Blobs, ByteRange } from '../../blobs/blobs.ts';
import { BlobError } from '../../blobs/errors.ts';
import { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';
import { linkBlob } from '../../domains/registry/manifests/blob-links.ts';
import type { Permission, Target } from '../auth/permission.ts';
import { OciError } from '../errors.ts';
import type { Fence } from '../gc/gc-lock.ts';
import { arriving, free, hasBody, lengthOf } from '../http/body.ts';
import type { Answer, Call } from '../http/call.ts';
import { chunkRangeOf } from '../http/range.ts';
import type { RouteOf } from '../http/routes.ts';
import { requireDigest } from '../names.ts';
import { recordPush } from '../push-pull-events.ts';
import type { InRepo } from './create-repo-on-push.ts';
import type { Mounts } from './mounts.ts';
import type { UploadIds } from './upload-ids.ts';

export interface UploadsOptions {
  readonly blobs: Blobs;
  readonly permission: Permission;
  readonly inRepo: InRepo;
  readonly mounts: Mounts;
  readonly ids: UploadIds;
  readonly fence: Fence;
  /** The most bytes of one blob. */
  readonly maxBytes: number;
  /** How long a client may send nothing in the middle of an upload. */
  readonly stallMs: number;
}

const PUSH = [Capability.CAP_MANIFEST_CREATE];

/** An upload of this caller to this repo. */
interface Upload {
  readonly id: string;
  readonly target: Target;
  readonly location: string;
}

export function createUploads({ blobs, permission, inRepo, mounts, ids, fence, maxBytes, stallMs }: UploadsOptions) {
  /** Begins an upload, takes a whole blob at once, or mounts one from another repo. */
  async function begin(call: Call, { name }: RouteOf<'uploads'>): Promise<Answer> {
    const target = await permission.requireTarget(call, name, PUSH);
    const mounted = await mounts.mount(call, target);
    if (mounted !== undefined) return created(name, mounted);
    const digest = call.query.get('digest');
    if (digest !== null) return takeWhole(call, target, requireDigest(digest));
    const repo = target.repo ?? (await inRepo(call, target, async (_tx, made) => made));
    const id = await blobs.begin();
    return { status: 202, headers: progress({ id, target, location: locationOf(call, target, repo, id) }, 0) };
  }

  async function takeWhole(call: Call, target: Target, digest: string): Promise<Answer> {
    refuseLarge(0, lengthOf(call.req));
    const id = await blobs.begin();
    try {
      await receive(call, id, 0);
      await place(call, target, id, digest);
    } catch (error) {
      // Nobody knows its id, so nobody can go on with it.
      await blobs.cancel(id).catch(() => {});
      throw error;
    }
    return created(target.name, digest);
  }

  async function append(call: Call, route: RouteOf<'upload'>): Promise<Answer> {
    const upload = await requireUpload(call, route);
    const end = await appendChunk(call, upload);
    return { status: 202, headers: progress(upload, end) };
  }

  async function finish(call: Call, route: RouteOf<'upload'>): Promise<Answer> {
    const digest = requireDigest(call.query.get('digest') ?? '');
    const upload = await requireUpload(call, route);
    if (hasBody(call.req)) await appendChunk(call, upload);
    await place(call, upload.target, upload.id, digest);
    return created(route.name, digest);
  }

  async function status(call: Call, route: RouteOf<'upload'>): Promise<Answer> {
    const upload = await requireUpload(call, route);
    return { status: 204, headers: progress(upload, await offsetOf(upload)) };
  }

  async function cancel(call: Call, route: RouteOf<'upload'>): Promise<Answer> {
    const { id } = await requireUpload(call, route);
    if (!(await blobs.cancel(id))) throw unknown();
    return { status: 204 };
  }

  async function requireUpload(call: Call, { name, id: reference }: RouteOf<'upload'>): Promise<Upload> {
    const target = await permission.requireTarget(call, name, PUSH);
    if (target.repo === undefined) throw unknown();
    const id = ids.read(reference, target.repo, call.credential.caller.uid);
    if (id === undefined) throw unknown();
    return { id, target, location: locationOf(call, target, target.repo, id) };
  }

  const locationOf = ({ credential: { caller } }: Call, { name }: Target, repo: string, id: string): string =>
    `/v2/${name}/blobs/uploads/${ids.write(id, repo, caller.uid)}`;

  async function offsetOf({ id }: Upload): Promise<number> {
    const offset = await blobs.offset(id);
    if (offset === undefined) throw unknown();
    return offset;
  }

  /** Takes what the request brings, at its place if it names one, and answers where the upload ends now. */
  async function appendChunk(call: Call, upload: Upload): Promise<number> {
    const length = lengthOf(call.req);
    const range = chunkRangeOf(call.req.headers['content-range'], length);
    const offset = range?.start ?? (await offsetOf(upload));
    refuseLarge(offset, length);
    try {
      const end = await receive(call, upload.id, offset, range);
      if (range && end !== range.end + 1) throw new OciError('SIZE_INVALID', 'Content-Range is longer than the chunk');
      return end;
    } catch (error) {
      throw error instanceof BlobError && error.failure.reason === 'offset'
        ? outOfOrder(upload, error.failure.offset, error.message)
        : error;
    }
  }

  /** However long it takes: a layer of many gigabytes on a slow line is no attack. */
  async function receive({ req, arrival }: Call, id: string, offset: number, range?: ByteRange): Promise<number> {
    const limit = Math.min(maxBytes, range ? range.end + 1 : Infinity);
    arrival.suspend();
    try {
      return await blobs.append(id, offset, arriving(req, stallMs), { limit, done: free });
    } finally {
      arrival.resume();
    }
  }

  function refuseLarge(offset: number, length = 0): void {
    if (offset + length > maxBytes) throw new BlobError({ reason: 'large', limit: maxBytes });
  }

  /** Makes an upload a blob that the repo has. */
  async function place(call: Call, target: Target, id: string, digest: string): Promise<void> {
    const ticket = await fence.enter();
    const { size } = await blobs.finish(id, digest);
    await inRepo(call, target, async (tx, repo) => {
      await fence.pass(tx, ticket, digest);
      await linkBlob(tx, repo, digest, size, call.now);
      await recordPush(tx, call, { name: target.name, repo, digest, type: 'blob' });
    });
  }

  return { begin, append, finish, status, cancel };
}

const created = (name: string, digest: string): Answer => ({
  status: 201,
  headers: { location: `/v2/${name}/blobs/${digest}`, 'docker-content-digest': digest },
});

/** The last byte that is there; for none, clients expect `0-0` as for one. */
const progress = ({ id, location }: Upload, end: number): OutgoingHttpHeaders => ({
  location,
  range: `0-${Math.max(0, end - 1)}`,
  'docker-upload-uuid': id,
});

const unknown = (): BlobError => new BlobError({ reason: 'unknown', kind: 'upload' });

const outOfOrder = (upload: Upload, offset: number, message: string): OciError =>
  new OciError('BLOB_UPLOAD_INVALID', message, { status: 416, headers: progress(upload, offset) });
