import { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';
import { blobLink, mountBlob, reposLinking } from '../../domains/registry/manifests/blob-links.ts';
import { resolveRepo } from '../../domains/registry/repos/resolve-repo.ts';
import type { Store } from '../../store/store.ts';
import { type Challenges, scopeFor } from '../auth/challenge.ts';
import type { Target } from '../auth/permission.ts';
import type { Call } from '../http/call.ts';
import { requireDigest, segmentsOf } from '../names.ts';
import { recordPush } from '../push-pull-events.ts';
import type { InRepo } from './create-repo-on-push.ts';

export interface MountsOptions {
  readonly store: Store;
  readonly challenges: Challenges;
  readonly inRepo: InRepo;
}

export interface Mounts {
  /** The digest, when the request asked for a mount and the caller may read the blob elsewhere; else it must be uploaded. */
  mount(call: Call, target: Target): Promise<string | undefined>;
}

const PULL = [Capability.CAP_REPO_BLOBS_GET];
/** Of a blob that many repos have, more are not looked at for one that the caller may read. */
const MAX_SOURCES = 100;

/** Lets a repo have what another has, without sending it again. */
export function createMounts({ store, challenges, inRepo }: MountsOptions): Mounts {
  /** The repo that the client names, if the caller may read the blob there. */
  async function named(call: Call, target: Target, from: string, digest: string): Promise<string | undefined> {
    const { caller, isMeantFor } = call.credential;
    const segments = segmentsOf(from);
    if (!isMeantFor(from, 'pull')) throw challenges.insufficient(scopeFor(target.name, 'push'), scopeFor(from, 'pull'));
    const { repo } = await resolveRepo(store.reader, segments);
    if (repo === undefined || !caller.can(PULL, repo)) return undefined;
    return (await blobLink(store.reader, repo, digest)) && repo;
  }

  /** Any repo in which the caller may read it. */
  async function anywhere({ credential: { caller } }: Call, digest: string): Promise<string | undefined> {
    const repos = await reposLinking(store.reader, digest, MAX_SOURCES);
    return repos.find((repo) => caller.can(PULL, repo));
  }

  return {
    async mount(call, target) {
      const asked = call.query.get('mount');
      if (asked === null) return undefined;
      const digest = requireDigest(asked);
      const from = call.query.get('from');
      const source = from === null ? await anywhere(call, digest) : await named(call, target, from, digest);
      if (source === undefined) return undefined;
      const { name } = target;
      return inRepo(call, target, async (tx, repo) => {
        if (!(await mountBlob(tx, source, repo, digest, call.now))) return undefined;
        await recordPush(tx, call, { name, repo, digest, type: 'blob' });
        return digest;
      });
    },
  };
}
