import { parentOf } from '../../../base/uid.ts';
import type { Tag } from '../../../contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import type { VersionLifecycle } from '../../../contract/gen/wharfinger/registry/v1/version_lifecycles_pb.js';
import type { ReadContext } from '../../../resource/operation.ts';
import { findAll, findMessagesByUid } from '../../../resource/read.ts';
import { repos } from '../repos/repos.ts';
import { deprecatedSince, tags as tagResource } from './tags.ts';
import { findLifecycles } from './version-lifecycles.ts';

/** Whether a tag is still updated. */
export type EolStatus = 'active' | 'in grace' | 'inactive';

/** Whether there is a grace period after the end of life. */
export type GraceStatus = 'not eligible' | 'eligible' | 'active' | 'broken' | 'expired';

/** A tag with its place in the life cycle of its version. */
export interface EolTag {
  readonly uid: string;
  readonly name: string;
  readonly mainPackageName: string;
  readonly status: EolStatus;
  readonly grace: GraceStatus;
  /** The declared life cycle of its version. */
  readonly lifecycle: VersionLifecycle | undefined;
  /** When the tag was deprecated; undefined if it is not, or if the time was not recorded. */
  readonly deprecated: number | undefined;
}

/** Finds out for each tag where it is in the life cycle of its version. */
export async function describeEol({ db, now }: ReadContext, tags: readonly Tag[]): Promise<EolTag[]> {
  const named = tags.map((tag) => ({ tag, name: tag.name, repo: parentOf(tag.uid) }));
  const repoOf = await findMessagesByUid(db, repos, [...new Set(named.map(({ repo }) => repo))]);
  const lifecycles = await findLifecycles(db, named);
  const deprecatedUids = tags.filter(({ deprecated }) => deprecated).map(({ uid }) => uid);
  const stored = await findAll(db, tagResource, deprecatedUids);
  const times = new Map<string, number | undefined>(stored.map(({ uid, state }) => [uid, deprecatedSince(state)]));
  return named.map((entry) => {
    const { uid, name, deprecated } = entry.tag;
    const lifecycle = lifecycles.get(entry);
    const period = periodOf(lifecycle, now);
    return {
      uid,
      name,
      mainPackageName: lifecycle?.mainPackageName || (repoOf.get(entry.repo)?.name ?? ''),
      grace: period.grace,
      // A deprecated tag is no longer updated, whatever its version declares.
      status: deprecated ? 'inactive' : period.status,
      lifecycle,
      deprecated: times.get(uid),
    };
  });
}

/** The status that a life cycle gives to the tags of its version. Its dates begin at midnight UTC. */
export function periodOf(
  lifecycle: Pick<VersionLifecycle, 'eolDate' | 'gracePeriodExpiryDate' | 'eolBroken'> | undefined,
  now: number,
): { readonly status: EolStatus; readonly grace: GraceStatus } {
  const { eolDate = '', gracePeriodExpiryDate = '', eolBroken = false } = lifecycle ?? {};
  const hasGrace = gracePeriodExpiryDate !== '';
  if (eolDate === '' || now < Date.parse(eolDate)) {
    return { status: 'active', grace: hasGrace ? 'eligible' : 'not eligible' };
  }
  if (!hasGrace) return { status: 'inactive', grace: 'not eligible' };
  if (now >= Date.parse(gracePeriodExpiryDate)) return { status: 'inactive', grace: 'expired' };
  return eolBroken ? { status: 'inactive', grace: 'broken' } : { status: 'in grace', grace: 'active' };
}
