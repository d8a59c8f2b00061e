import { createHash } from 'node:crypto';
import type { OutgoingHttpHeaders } from 'node:http';
import type { Blobs } from '../../blobs/blobs.ts';
import { toDigest } from '../../blobs/digest.ts';
import { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';
import { RegistryError } from '../../domains/registry/errors.ts';
import { createContentReader } from '../../domains/registry/manifests/blob-content.ts';
import { type ReadConfig, readPushed } from '../../domains/registry/manifests/manifest.ts';
import {
  deleteManifest,
  findManifest,
  findTagged,
  holdManifest,
  putManifest,
  type StoredManifest,
} from '../../domains/registry/manifests/manifests.ts';
import { deleteTag } from '../../domains/registry/tags/tag-targets.ts';
import type { Store, Transaction } from '../../store/store.ts';
import { denied, type Permission } from '../auth/permission.ts';
import { readBody } from '../http/body.ts';
import { isCurrent, lasting } from '../http/caching.ts';
import type { Answer, Call } from '../http/call.ts';
import type { RouteOf } from '../http/routes.ts';
import { referenceOf, requireTag } from '../names.ts';
import type { PullLog } from '../pull-log.ts';
import { eventOf, recordPush } from '../push-pull-events.ts';
import type { createAttachedReports } from './attached-reports.ts';
import type { InRepo } from './create-repo-on-push.ts';

export interface ManifestsOptions {
  readonly store: Store;
  readonly blobs: Pick<Blobs, 'open'>;
  readonly permission: Permission;
  readonly inRepo: InRepo;
  /** Takes in the vulnerability reports that are attached to images. */
  readonly takeReport: ReturnType<typeof createAttachedReports>;
  /** Where pulls are noted; nowhere when nobody wants to know. */
  readonly pulls: PullLog | undefined;
}

type Route = RouteOf<'manifest'>;

const MAX_BYTES = 4 * 1024 * 1024;
/** How many tags a push by digest may name. */
const MAX_TAGS = 10;

const PULL = [Capability.CAP_REPO_LIST, Capability.CAP_MANIFEST_LIST];
const PULL_BY_TAG = [...PULL, Capability.CAP_TAG_LIST];
const PUSH = [Capability.CAP_MANIFEST_CREATE, Capability.CAP_MANIFEST_UPDATE];

export function createManifests({ store, blobs, permission, inRepo, takeReport, pulls }: ManifestsOptions) {
  const readContent = createContentReader(blobs);

  /** The hot path: one statement for the name, one for the manifest. What is stored is sent, whatever `Accept` says. */
  async function get(call: Call, { name, reference }: Route): Promise<Answer> {
    const wanted = referenceOf(reference);
    const byTag = 'tag' in wanted;
    const repo = await permission.require(call, name, 'pull', byTag ? PULL_BY_TAG : PULL);
    const found = byTag
      ? await findTagged(store.reader, repo, wanted.tag)
      : await findManifest(store.reader, repo, wanted.digest);
    if (!found) throw unknown(name, reference);
    const sent = () =>
      pulls?.record(
        eventOf('pull', call, {
          name,
          repo,
          digest: found.digest,
          type: 'manifest',
          tag: byTag ? wanted.tag : undefined,
        }),
      );
    const headers = headersOf(found, byTag);
    if (isCurrent(call.req, found.digest)) return { status: 304, headers, sent };
    return { status: 200, headers: { ...headers, 'content-type': found.mediaType }, body: found.bytes, sent };
  }

  async function put(call: Call, { name, reference }: Route): Promise<Answer> {
    const wanted = referenceOf(reference);
    const tags = 'tag' in wanted ? [wanted.tag] : tagsIn(call.query);
    const target = await permission.requireTarget(call, name, PUSH);
    const bytes = await readBody(call.req, MAX_BYTES);
    const digest = 'digest' in wanted ? verified(bytes, wanted.digest) : digestOf(bytes, 'sha256');
    const mediaType = call.req.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
    const pushed = await readPushed({ digest, mediaType, bytes }, blobReader(target.repo));

    const { subject, repo } = await inRepo(call, target, async (tx, repo) => {
      await requireWrite(call, tx, { name, repo, digest, tags });
      const write = { db: tx, now: call.now, actor: call.credential.caller.uid };
      let subject: string | undefined;
      for (const tag of tags.length > 0 ? tags : [undefined]) {
        const { subject: found, previousDigest } = await putManifest(write, repo, pushed, tag);
        subject = found;
        await recordPush(tx, call, { name, repo, digest, type: 'manifest', tag, previousDigest });
      }
      return { subject, repo };
    });
    await takeReport(repo, pushed.manifest, blobReader(repo), call.now);
    return {
      status: 201,
      headers: {
        location: `/v2/${name}/manifests/${digest}`,
        'docker-content-digest': digest,
        ...(subject !== undefined && { 'oci-subject': subject }),
        ...('digest' in wanted && tags.length > 0 && { 'oci-tag': [...tags] }),
      },
    };
  }

  /** For small blobs: the config of an image, which has its platform, or a report. A repo that is not there yet has none. */
  const blobReader =
    (repo: string | undefined): ReadConfig =>
    async ({ digest, size }) => {
      // A manifest that lies about a size must not make us read a layer.
      const content = repo === undefined ? undefined : await readContent(store.reader, repo, digest, size);
      return content?.length === size ? content : undefined;
    };

  async function remove(call: Call, { name, reference }: Route): Promise<Answer> {
    const wanted = referenceOf(reference);
    const byTag = 'tag' in wanted;
    const capability = byTag ? Capability.CAP_TAG_DELETE : Capability.CAP_MANIFEST_DELETE;
    const repo = await permission.require(call, name, 'delete', [capability]);
    const existed = await store.write((db) => {
      const write = { db, now: call.now, actor: call.credential.caller.uid };
      return byTag ? deleteTag(write, repo, wanted.tag) : deleteManifest(write, repo, wanted.digest);
    });
    if (!existed) throw unknown(name, reference);
    return { status: 202 };
  }

  return { get, put, remove };
}

interface Change {
  readonly name: string;
  readonly repo: string;
  readonly digest: string;
  readonly tags: readonly string[];
}

/** Whether something is new or changes is known in the transaction only. */
async function requireWrite(call: Call, tx: Transaction, { name, repo, digest, tags }: Change): Promise<void> {
  const exists = await holdManifest(tx, repo, digest);
  const needed = [exists ? Capability.CAP_MANIFEST_UPDATE : Capability.CAP_MANIFEST_CREATE];
  for (const tag of tags) {
    const before = await findTagged(tx, repo, tag);
    if (!before) needed.push(Capability.CAP_TAG_CREATE);
    else if (before.digest !== digest) needed.push(Capability.CAP_TAG_UPDATE);
  }
  if (!call.credential.caller.can(needed, repo)) throw denied(name, needed);
}

const unknown = (name: string, reference: string): RegistryError =>
  new RegistryError('MANIFEST_UNKNOWN', `${name} has no manifest ${reference}`);

const headersOf = ({ digest }: StoredManifest, byTag: boolean): OutgoingHttpHeaders => ({
  'docker-content-digest': digest,
  ...lasting(digest, byTag ? 'until it moves' : 'for ever'),
});

const digestOf = (bytes: Uint8Array, algorithm: string): string =>
  `${algorithm}:${createHash(algorithm).update(bytes).digest('hex')}`;

function verified(bytes: Uint8Array, claimed: string): string {
  const actual = digestOf(bytes, toDigest(claimed)?.algorithm ?? 'sha256');
  if (actual !== claimed)
    throw new RegistryError('DIGEST_INVALID', `the digest of the bytes is ${actual}, not ${claimed}`);
  return actual;
}

/** A push by digest may name tags as parameters (distribution-spec after 1.1): the way to tag what is not SHA-256. */
function tagsIn(query: URLSearchParams): readonly string[] {
  const tags = [...new Set(query.getAll('tag'))].map(requireTag);
  if (tags.length > MAX_TAGS) throw new RegistryError('TAG_INVALID', `a push may name at most ${MAX_TAGS} tags`);
  return tags;
}
