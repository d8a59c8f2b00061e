import { createHash } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import type { Uid } from '../../base/uid.ts';
import type { Blobs } from '../../blobs/blobs.ts';
import { toDigest } from '../../blobs/digest.ts';
import { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';
import { DeleteTagRequestSchema, TagsService } from '../../contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import { RegistryError } from '../../domains/registry/errors.ts';
import { parsePushedManifest, type ReadConfig } from '../../domains/registry/manifests/manifest.ts';
import {
  deleteManifest,
  findManifest,
  findTagged,
  lockManifest,
  putManifest,
  type StoredManifest,
} from '../../domains/registry/manifests/manifests.ts';
import { createBlobReader } from '../../domains/registry/manifests/read-blob.ts';
import { findTagForUpdate, findTagsForUpdate } from '../../domains/registry/tags/tag-targets.ts';
import type { RunNested } from '../../pipeline/nested.ts';
import type { AnyEventFacts } from '../../pipeline/record-event.ts';
import { recordingEvents, runInTransaction, type TransactionContext } from '../../pipeline/run-write.ts';
import type { Caller } from '../../resource/caller.ts';
import { requireCapabilities } from '../../resource/require-capabilities.ts';
import type { Reader, Store, Transaction } from '../../store/store.ts';
import type { RepositoryAccess } from '../auth/repository-access.ts';
import { readBody } from '../http/body.ts';
import { cacheHeaders, isNotModified } from '../http/caching.ts';
import type { OciCall, OciResponse } from '../http/call.ts';
import type { RouteOf } from '../http/routes.ts';
import { requireDigest, requireTag } from '../names.ts';
import type { PullLog } from '../pull-log.ts';
import { pullEvent, registryEvent } from '../push-pull-events.ts';
import type { createAttachedReports } from './attached-reports.ts';
import type { WriteToRepo } from './create-repo-on-push.ts';

export interface ManifestEndpointsOptions {
  readonly store: Store;
  readonly blobs: Pick<Blobs, 'open'>;
  readonly access: RepositoryAccess;
  readonly writeToRepo: WriteToRepo;
  readonly runNested: RunNested;
  /** Stores the vulnerability reports that are attached to images. */
  readonly storeReport: ReturnType<typeof createAttachedReports>;
  /** Absent when pull events are turned off. */
  readonly pulls: PullLog | undefined;
}

type ByDigest = RouteOf<'manifest'>;
type ByTag = RouteOf<'tagged manifest'>;

const MAX_BYTES = 4 * 1024 * 1024;
/** How many tags a push by digest may name. */
const MAX_TAGS = 10;

const PUSH = [Capability.CAP_MANIFEST_CREATE, Capability.CAP_MANIFEST_UPDATE];

export function createManifestEndpoints(options: ManifestEndpointsOptions) {
  const { store, blobs, access, writeToRepo, runNested, storeReport, pulls } = options;
  const readBlob = createBlobReader(blobs);

  async function getByDigest(call: OciCall, { name, digest }: ByDigest): Promise<OciResponse> {
    requireDigest(digest);
    const repo = await access.require(call, name, 'pull');
    return manifestResponse(call, { name, repo }, await findManifest(call.db, repo, digest), digest);
  }

  async function getByTag(call: OciCall, { name, tag }: ByTag): Promise<OciResponse> {
    requireTag(tag);
    const repo = await access.require(call, name, 'pull');
    return manifestResponse(call, { name, repo, tag }, await findTagged(call.db, repo, tag), tag);
  }

  /** Sends the manifest as it was pushed, whatever the `Accept` header says. */
  function manifestResponse(
    call: OciCall,
    { name, repo, tag }: { readonly name: string; readonly repo: Uid; readonly tag?: string },
    manifest: StoredManifest | undefined,
    reference: string,
  ): OciResponse {
    if (!manifest) throw unknown(name, reference);
    const { digest, mediaType, bytes } = manifest;
    const headers = { 'docker-content-digest': digest, ...cacheHeaders(digest, tag === undefined ? 'digest' : 'tag') };
    const sent = () => pulls?.record(pullEvent(call, { name, repo, digest, type: 'manifest', tag }));
    if (isNotModified(call.req, digest)) return { status: 304, headers, sent };
    return { status: 200, headers: { ...headers, 'content-type': mediaType }, body: bytes, sent };
  }

  const putByDigest = (call: OciCall, { name, digest }: ByDigest): Promise<OciResponse> =>
    push(call, name, tagsIn(call.query), requireDigest(digest));

  const putByTag = (call: OciCall, { name, tag }: ByTag): Promise<OciResponse> => push(call, name, [requireTag(tag)]);

  async function push(
    call: OciCall,
    name: string,
    tags: readonly string[],
    claimedDigest?: string,
  ): Promise<OciResponse> {
    const target = await access.requirePushTarget(call, name, PUSH);
    const bytes = await readBody(call.req, MAX_BYTES);
    const digest = claimedDigest === undefined ? digestOf(bytes, 'sha256') : verifiedDigest(bytes, claimedDigest);
    const mediaType = call.req.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
    const pushed = await parsePushedManifest({ digest, mediaType, bytes }, blobReader(call.db, target.repo));

    const { subject, repo } = await writeToRepo(call, target, async ({ db, caller }, repo) => {
      await requireWrite(caller, db, { name, repo, digest, tags });
      const write = { db, now: call.now, actor: call.caller.uid };
      const events: AnyEventFacts[] = [];
      let subject: string | undefined;
      for (const tag of tags.length > 0 ? tags : [undefined]) {
        const put = await putManifest(write, repo, pushed, tag);
        subject = put.subject;
        events.push(
          registryEvent(call, { name, repo, digest, type: 'manifest', tag, previousDigest: put.previousDigest }),
        );
      }
      return { result: { subject, repo }, events };
    });
    await storeReport(repo, pushed.manifest, blobReader(call.db, repo), call.now);
    return {
      status: 201,
      headers: {
        location: `/v2/${name}/manifests/${digest}`,
        'docker-content-digest': digest,
        ...(subject !== undefined && { 'oci-subject': subject }),
        ...(claimedDigest !== undefined && tags.length > 0 && { 'oci-tag': [...tags] }),
      },
    };
  }

  /** Reads small blobs: the config of an image, which has its platform, or a report. */
  const blobReader =
    (db: Reader, repo: string | undefined): ReadConfig =>
    async ({ digest, size }) => {
      // The manifest may state a wrong size, and a layer must not be read into memory.
      const content = repo === undefined ? undefined : await readBlob(db, repo, digest, size);
      return content?.length === size ? content : undefined;
    };

  async function deleteByTag(call: OciCall, { name, tag }: ByTag): Promise<OciResponse> {
    requireTag(tag);
    const repo = await access.require(call, name, 'delete');
    const work = async (ctx: TransactionContext) => {
      const stored = await findTagForUpdate(ctx.db, repo, tag);
      if (!stored) throw unknown(name, tag);
      await deleteTag(ctx, stored.uid);
    };
    await runInTransaction(store, call, work, { authorize: deleteAuthorizer(call, name) });
    return { status: 202 };
  }

  async function deleteByDigest(call: OciCall, { name, digest }: ByDigest): Promise<OciResponse> {
    requireDigest(digest);
    const repo = await access.require(call, name, 'delete');
    const work = recordingEvents(async (ctx) => {
      for (const { uid } of await findTagsForUpdate(ctx.db, repo, digest)) await deleteTag(ctx, uid);
      const write = { db: ctx.db, now: call.now, actor: call.caller.uid };
      if (!(await deleteManifest(write, repo, digest))) throw unknown(name, digest);
      return { result: undefined, events: [registryEvent(call, { name, repo, digest, type: 'manifest' })] };
    });
    await runInTransaction(store, call, work, { authorize: deleteAuthorizer(call, name) });
    return { status: 202 };
  }

  const deleteAuthorizer = (call: OciCall, name: string) => (ctx: TransactionContext) =>
    access.require({ ...call, ...ctx }, name, 'delete');

  const deleteTag = (ctx: TransactionContext, uid: string) =>
    runNested(ctx, TagsService.method.deleteTag, create(DeleteTagRequestSchema, { uid }));

  return { getByDigest, getByTag, putByDigest, putByTag, deleteByDigest, deleteByTag };
}

interface ManifestChange {
  readonly name: string;
  readonly repo: Uid;
  readonly digest: string;
  readonly tags: readonly string[];
}

/** Only the transaction knows whether the manifest and the tags are new, and so which capabilities the push needs. */
async function requireWrite(
  caller: Caller,
  tx: Transaction,
  { name, repo, digest, tags }: ManifestChange,
): Promise<void> {
  const exists = await lockManifest(tx, repo, digest);
  const needed = [exists ? Capability.CAP_MANIFEST_UPDATE : Capability.CAP_MANIFEST_CREATE];
  for (const tag of tags) {
    const before = await findTagged(tx, repo, tag);
    if (!before) needed.push(Capability.CAP_TAG_CREATE);
    else if (before.digest !== digest) needed.push(Capability.CAP_TAG_UPDATE);
  }
  requireCapabilities(needed, caller, repo, name);
}

const unknown = (name: string, reference: string): RegistryError =>
  new RegistryError('MANIFEST_UNKNOWN', `${name} has no manifest ${reference}`);

const digestOf = (bytes: Uint8Array, algorithm: string): string =>
  `${algorithm}:${createHash(algorithm).update(bytes).digest('hex')}`;

function verifiedDigest(bytes: Uint8Array, claimed: string): string {
  const actual = digestOf(bytes, toDigest(claimed)?.algorithm ?? 'sha256');
  if (actual !== claimed) {
    throw new RegistryError('DIGEST_INVALID', `the digest of the manifest is ${actual}, not ${claimed}`);
  }
  return actual;
}

/** Tags of a push by digest, as query parameters (distribution-spec after 1.1). Only so can a sha512 manifest be tagged. */
function tagsIn(query: URLSearchParams): readonly string[] {
  const tags = [...new Set(query.getAll('tag'))].map(requireTag);
  if (tags.length > MAX_TAGS) throw new RegistryError('TAG_INVALID', `a push may name at most ${MAX_TAGS} tags`);
  return tags;
}
