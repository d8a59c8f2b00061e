import { invalid, notFound } from '../../../base/errors.ts';
import { isUid, isWithin, type Uid } from '../../../base/uid.ts';
import type { Resource } from '../../../resource/definition.ts';
import { findByName } from '../../../resource/list/find-by-name.ts';
import type { WriteContext } from '../../../resource/operation.ts';
import { findByKey } from '../../../resource/read.ts';
import { requireCapabilities } from '../../../resource/require-capabilities.ts';

/**
 * Returns the uid of the group that a create request names as its parent: by uid, by the suffix of the uid, or by name.
 * Suffixes and names are looked up within the caller's reach.
 */
export async function findParentGroup(ctx: WriteContext, groups: Resource, parent: string): Promise<Uid> {
  if (isUid(parent)) {
    requireCapabilities(ctx.method.capabilities, ctx.caller, parent);
    return parent;
  }
  const { db, caller, method } = ctx;
  const reach = caller.reach(method.capabilities);
  const bySuffix = /^[0-9a-f]{16}$/.test(parent) ? await findByKey(db, groups, parent) : undefined;
  if (bySuffix && reach.some((scope) => isWithin(bySuffix, scope))) return bySuffix;

  const [byName, another] = await findByName(db, groups, reach, parent);
  if (!byName) throw notFound(groups.kind, parent);
  if (another) throw invalid('parent', `several groups are named ${parent}; give the uid instead`);
  return byName;
}
