import { create } from '@bufbuild/protobuf';
import { invalid } from '../../../base/errors.ts';
import { isUid, ROOT } from '../../../base/uid.ts';
import { capabilitiesIn, withoutCapabilities } from '../../../contract/capabilities.ts';
import type { GroupInvite } from '../../../contract/gen/chainguard/platform/iam/v2/group_invites_pb.js';
import { GroupSchema } from '../../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import type { Caller } from '../../../resource/caller.ts';
import type { WriteContext } from '../../../resource/operation.ts';
import { requireReach } from '../../../resource/require-capabilities.ts';
import { createResource } from '../../../resource/standard-methods.ts';
import { founderRole, requireCanCreateOrganization } from '../groups/create-organization.ts';
import { groups } from '../groups/groups.ts';
import { createInvite } from './group-invites.ts';

/** Creates an organization and an invite to it in one transaction. */
export async function createOrganizationWithInvite(
  ctx: WriteContext,
  name: string,
  invite: GroupInvite,
): Promise<GroupInvite> {
  requireReach(ctx.method.capabilities, ctx.caller);
  if (isUid(name)) throw invalid('name', 'must be the name of a new organization, and not the uid of a group');
  requireCanCreateOrganization(ctx);
  const organization = await createResource(ctx, groups, create(GroupSchema, { name }), ROOT);
  return createInvite({ ...ctx, caller: withFounderRole(ctx.caller) }, organization.uid, invite);
}

/**
 * The caller with the role that it has just got at the organization. Its grants were read before the transaction. Its
 * token may be restricted, so it can only grant capabilities of that role that it also holds at another group.
 */
const withFounderRole = (caller: Caller): Caller => ({
  ...caller,
  lacks: (wanted) =>
    caller.reach(capabilitiesIn(wanted)).length > 0
      ? withoutCapabilities(wanted, founderRole(caller).capabilities)
      : wanted,
});
