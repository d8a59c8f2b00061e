import { invalid } from '../../../base/errors.ts';
import type { MaybePromise } from '../../../base/maybe-promise.ts';
import { isUid, newUid, type ParentUid, parentOf, ROOT, rootOf, suffixOf } from '../../../base/uid.ts';
import {
  type Group,
  GroupSchema,
  OrgKind,
  OrgStatus,
} from '../../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { defineResource } from '../../../resource/definition.ts';
import type { WriteContext } from '../../../resource/operation.ts';
import { find } from '../../../resource/read.ts';
import { findMessage } from '../../../resource/read-message.ts';
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

/** Refuses a verified organization without a kind. */
function requireKindIfVerified({ verified, kind }: Group): void {
  if (verified && kind === OrgKind.UNSPECIFIED) throw invalid('kind', 'is required for a verified organization');
}

/**
 * Refuses a kind that differs from that of the organization, and stores none. Clients may send back what they read.
 * `stored` is a kind that an earlier release has stored.
 */
async function inheritKind(
  { db }: WriteContext,
  uid: string,
  group: Group,
  stored = OrgKind.UNSPECIFIED,
): Promise<void> {
  if (group.kind === stored) group.kind = OrgKind.UNSPECIFIED;
  if (group.kind === OrgKind.UNSPECIFIED) return;
  const organization = await find(db, groups, rootOf(uid));
  if (organization?.message.kind !== group.kind) {
    throw invalid('kind', 'is inherited from the organization; leave it out here, or change it there');
  }
  group.kind = OrgKind.UNSPECIFIED;
}

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
    if (parent !== ROOT) {
      await inheritKind(ctx, uid, group);
      return undefined;
    }
    requireKindIfVerified(group);
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

  async beforeUpdate(ctx: WriteContext, { uid, parent, message: before }, group) {
    if (group.verified !== before.verified) requireOperator(ctx, VERIFY);
    if (parent !== ROOT) await inheritKind(ctx, uid, group, before.kind);
    else if (group.verified !== before.verified || group.kind !== before.kind) requireKindIfVerified(group);
    return undefined;
  },

  // The kind and the status are stored with the organization only.
  needsPresent: ({ uid }) => parentOf(uid) !== ROOT,
  async present({ db }, presented): Promise<void> {
    const roots = new Map<string, Group | undefined>();
    for (const group of presented) {
      const root = rootOf(group.uid);
      if (root === group.uid) continue;
      if (!roots.has(root)) roots.set(root, await findMessage(db, groups, root));
      const { kind = OrgKind.UNSPECIFIED, status = OrgStatus.UNSPECIFIED } = roots.get(root) ?? {};
      Object.assign(group, { kind, status });
    }
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
