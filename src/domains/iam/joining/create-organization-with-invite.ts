import { create } from '@bufbuild/protobuf';
import { invalid } from '../../../base/errors.ts';
import { isUid } from '../../../base/uid.ts';
import { listOf, without } from '../../../contract/capabilities.ts';
import type { GroupInvite } from '../../../contract/gen/chainguard/platform/iam/v2/group_invites_pb.js';
import { type Group, GroupSchema } from '../../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import type { Caller } from '../../../resource/caller.ts';
import type { WriteContext } from '../../../resource/operation.ts';
import { createResource } from '../../../resource/standard-methods.ts';
import { requireSomewhere } from '../access/unscoped.ts';
import { founderRole, founding, groups } from '../groups/groups.ts';
import { inviteTo } from './group-invites.ts';

/** Creates an organization, and an invite to it: both or neither. */
export async function foundAndInvite(ctx: WriteContext, name: string, invite: GroupInvite): Promise<GroupInvite> {
  requireSomewhere(ctx);
  if (isUid(name)) throw invalid('name', 'must be the name of a new organization, and not the uid of a group');
  const organization = (await createResource(ctx, groups, create(GroupSchema, { name }), founding(ctx))) as Group;
  return inviteTo({ ...ctx, caller: founderOf(ctx.caller) }, organization.uid, invite);
}

/**
 * A caller was recognized before the transaction, and cannot know of the role that it has just got in the organization.
 * A token may be good for less than its identity is: what it hands out of that role, it must hold elsewhere too.
 */
const founderOf = (caller: Caller): Caller => ({
  ...caller,
  lacks: (wanted) =>
    caller.reach(listOf(wanted)).length > 0 ? without(wanted, founderRole(caller).capabilities) : wanted,
});
