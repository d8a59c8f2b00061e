import type { MaybePromise } from '../../../base/maybe-promise.ts';
import { isUid, newUid, type ParentUid, parentOf, ROOT, suffixOf } from '../../../base/uid.ts';
import { GroupSchema, OrgStatus } from '../../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { defineResource } from '../../../resource/definition.ts';
import type { WriteContext } from '../../../resource/operation.ts';
import { find } from '../../../resource/read.ts';
import * as rules from '../../../resource/rules.ts';
import { deleteOne, insert } from '../../../resource/write.ts';
import { requireOperatorsRemainWithout } from '../access/last-owner.ts';
import { newBinding, roleBindings } from '../roles/role-bindings.ts';
import { requireRoleRevocable } from '../roles/roles.ts';
import {
  countOrganization,
  founderRole,
  quotaReference,
  requireCanCreateOrganization,
  requireOperator,
} from './create-organization.ts';
import { findParentGroup } from './find-parent-group.ts';
import { requireNotReserved, reserveDeleted, reserveRenamed } from './former-names.ts';
import { FOUNDER } from './founder.ts';
import { forgetOrganization, recordMember } from './members.ts';

/** What only operators can do with a group. */
const VERIFY = 'change verified; leave it as it is';

/** A node of the resource tree. The founder of an organization (the caller that created it) gets a role at it. */
export const groups = defineResource({
  kind: 'group',
  plural: 'groups',
  schema: GroupSchema,
  parents: ['group', ROOT],
  isScope: true,
  // Records about the group itself, and data that it imported and can import again.
  cascade: [
    ...['terms acceptance', 'access request', 'entitlement', 'vulnerability', 'artifact'],
    ...['malware entry', 'library policy block event'],
  ],
  rules: { name: rules.name({ min: 3, max: 63 }), description: rules.description },
  orders: { name: (group) => group.name },
  references: { [FOUNDER]: (_group, state) => quotaReference(state) },
  unique: (group, parent) => [
    {
      key: groupKey(parent, group.name),
      taken: `a group named ${group.name} exists in ${parent === ROOT ? 'the root' : parent}`,
    },
    // Suffixes are random and do not collide. The key is for finding a parent by its suffix (find-parent-group.ts).
    { key: suffixOf(group.uid), taken: 'this uid suffix is in use' },
  ],
  event: (change, { uid }) => ({ group: change === 'delete' ? parentOf(uid) : uid }),

  // Annotated, because a function that refers to `groups` cannot take its types from the declaration.
  resolveParent(ctx: WriteContext, parent: string): MaybePromise<ParentUid> {
    if (parent !== '') return findParentGroup(ctx, groups, parent);
    requireCanCreateOrganization(ctx);
    return ROOT;
  },

  async beforeCreate(ctx: WriteContext, group, { uid, parent }) {
    if (group.verified) requireOperator(ctx, VERIFY);
    if (parent !== ROOT) return undefined;
    const founder = await countOrganization(ctx);
    group.status = OrgStatus.READY;
    return { founderBinding: newUid(uid), ...founder };
  },

  async afterCreate(ctx, { uid, parent, message: { name }, state }) {
    if (parent !== ROOT) return;
    await requireNotReserved(ctx, uid, name);
    const { db, caller, now } = ctx;
    const binding = state?.founderBinding;
    if (typeof binding !== 'string' || !isUid(binding)) return;
    const message = newBinding(caller.uid, founderRole(caller).uid);
    await insert(db, roleBindings, { message, uid: binding, parent: uid }, now);
    recordMember(db, uid, caller.uid);
  },

  beforeUpdate(ctx, { message: before }, group) {
    if (group.verified !== before.verified) requireOperator(ctx, VERIFY);
    return undefined;
  },

  async afterUpdate(ctx, { uid, parent, message: { name: before } }, { message: { name } }) {
    if (parent !== ROOT || name === before) return;
    await reserveRenamed(ctx, uid, before, name);
    await requireNotReserved(ctx, uid, name);
  },

  /** Deletes the role binding of the founder, which would prevent the deletion as other children do. */
  async beforeDelete(ctx, { uid, parent, message, state }) {
    if (parent !== ROOT) return;
    await reserveDeleted(ctx, uid, message.name);
    forgetOrganization(ctx.db, uid);
    const founderBinding = state?.founderBinding;
    const binding = typeof founderBinding === 'string' ? await find(ctx.db, roleBindings, founderBinding) : undefined;
    if (!binding) return;
    await requireRoleRevocable(ctx, binding.message.roleUid, binding.parent);
    await requireOperatorsRemainWithout(ctx, binding);
    await deleteOne(ctx.db, roleBindings, binding);
  },
});

/** The unique key of a group by its name. */
export function groupKey(parent: string, name: string): string {
  return `${parent}/${name}`;
}
