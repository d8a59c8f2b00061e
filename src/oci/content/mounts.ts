import type { Uid } from '../../base/uid.ts';
import { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';
import { findBlobLink, findReposLinking, mountBlob } from '../../domains/registry/manifests/blob-links.ts';
import { resolveRepo } from '../../domains/registry/repos/resolve-repo.ts';
import { type Challenges, scopeFor } from '../auth/challenge.ts';
import type { PushTarget } from '../auth/repository-access.ts';
import type { OciCall } from '../http/call.ts';
import { requireDigest, segmentsOf } from '../names.ts';
import { registryEvent } from '../push-pull-events.ts';
import type { WriteToRepo } from './create-repo-on-push.ts';
import type { StoredBlobs } from './stored-blobs.ts';

export interface MountsOptions {
  readonly challenges: Challenges;
  readonly writeToRepo: WriteToRepo;
  readonly blobs: Pick<StoredBlobs, 'isStored'>;
}

export interface Mounts {
  /** Returns the digest if the request asks for a mount and the caller can read the blob elsewhere, else undefined. */
  mount(call: OciCall, target: PushTarget): Promise<string | undefined>;
}

const PULL = [Capability.CAP_REPO_BLOBS_GET];
/** How many of the repos that have a blob are checked for one that the caller can read. */
const MAX_SOURCES = 100;

/** Adds a blob of one repo to another without uploading it again. */
export function createMounts({ challenges, writeToRepo, blobs }: MountsOptions): Mounts {
  /** The uid of the repo that the client names, if it has the blob and the caller can read it. */
  async function namedSource(
    call: OciCall,
    target: PushTarget,
    from: string,
    digest: string,
  ): Promise<Uid | undefined> {
    const segments = segmentsOf(from);
    if (!call.tokenAllows(from, 'pull')) {
      throw challenges.insufficient(call.req, scopeFor(target.name, 'push'), scopeFor(from, 'pull'));
    }
    const { repo } = await resolveRepo(call.db, segments);
    if (repo === undefined || !call.caller.can(PULL, repo)) return undefined;
    return (await findBlobLink(call.db, repo, digest)) && repo;
  }

  /** The uid of any repo that has the blob and that the caller can read. A registry token must name the repo. */
  async function anySource({ db, caller, tokenRepositories, tokenAllows }: OciCall, digest: string) {
    if (tokenRepositories === undefined) {
      const repos = await findReposLinking(db, digest, MAX_SOURCES);
      return repos.find((repo) => caller.can(PULL, repo));
    }
    for (const name of tokenRepositories.filter((repository) => tokenAllows(repository, 'pull'))) {
      const { repo } = await resolveRepo(db, segmentsOf(name));
      if (repo && caller.can(PULL, repo) && (await findBlobLink(db, repo, digest))) return repo;
    }
    return undefined;
  }

  return {
    async mount(call, target) {
      const mount = call.query.get('mount');
      if (mount === null) return undefined;
      const digest = requireDigest(mount);
      const from = call.query.get('from');
      const source = from === null ? await anySource(call, digest) : await namedSource(call, target, from, digest);
      const link = source === undefined ? undefined : await findBlobLink(call.db, source, digest);
      // If the file is lost or damaged, the client uploads it again.
      if (source === undefined || !link || !(await blobs.isStored(digest, link.size))) return undefined;
      const { name } = target;
      return writeToRepo(call, target, async ({ db, caller }, repo) => {
        if (!caller.can(PULL, source) || !(await mountBlob(db, source, repo, digest, call.now)))
          return { result: undefined, events: [] };
        return { result: digest, events: [registryEvent(call, { name, repo, digest, type: 'blob' })] };
      });
    },
  };
}
