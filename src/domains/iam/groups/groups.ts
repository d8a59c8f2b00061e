import { denied, invalid, notFound } from '../../../base/errors.ts';
import { isUid, isWithin, newUid, parentOf, ROOT, suffixOf } from '../../../base/uid.ts';
import { listOf } from '../../../contract/capabilities.ts';
import { Capability } from '../../../contract/gen/capabilities/capabilities_pb.js';
import { GroupSchema, OrgStatus } from '../../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import type { Caller } from '../../../resource/caller.ts';
import { defineResource } from '../../../resource/definition.ts';
import { findByName } from '../../../resource/list/find-by-name.ts';
import type { WriteContext } from '../../../resource/operation.ts';
import { find, findByKey } from '../../../resource/read.ts';
import * as rules from '../../../resource/rules.ts';
import { deleteOne, insert } from '../../../resource/write.ts';
import { type BuiltinRole, OPERATOR, OWNER } from '../roles/builtin-roles.ts';
import { newBinding, roleBindings } from '../roles/role-bindings.ts';

/** A place in the tree. Groups at the root are organizations. */
export const groups = defineResource({
  kind: 'group',
  plural: 'groups',
  schema: GroupSchema,
  parents: ['group', ROOT],
  isScope: true,
  // Papers of the group itself, which mean nothing without it, and what it copied from elsewhere.
  cascade: ['terms acceptance', 'access request', 'vulnerability', 'artifact'],
  rules: { name: rules.name({ min: 3, max: 63 }), description: rules.description },
  orders: { name: (group) => group.name },
  unique: (group, parent) => [
    {
      key: `${parent}/${group.name}`,
      taken: `a group named ${group.name} exists in ${parent === ROOT ? 'the root' : parent}`,
    },
    // Random, so never taken: it lets CreateGroup take a suffix for its parent.
    { key: suffixOf(group.uid), taken: 'this uid suffix is in use' },
  ],
  event: (change, { uid }) => ({ group: change === 'delete' ? parentOf(uid) : uid }),

  resolveParent: (ctx, asked) => (asked === '' ? founding(ctx) : findParent(ctx, asked)),

  beforeCreate(_ctx, group, { uid, parent }) {
    if (parent !== ROOT) return undefined;
    group.status = OrgStatus.READY;
    return { founderBinding: newUid(uid) };
  },

  async afterCreate({ db, caller, now }, { uid, state }) {
    const binding = state?.founderBinding;
    if (typeof binding !== 'string') return;
    const message = newBinding(caller.uid, founderRole(caller).uid);
    await insert(db, roleBindings, { message, uid: binding, parent: uid }, now);
  },

  /** The founder's own binding does not keep an organization from being deleted; all other children do. */
  async beforeDelete({ db }, { state }) {
    const binding = state?.founderBinding;
    const founder = typeof binding === 'string' ? await find(db, roleBindings, binding) : undefined;
    if (founder) await deleteOne(db, roleBindings, founder);
  },
});

/**
 * What keeps somebody from creating an organization, or nothing. It needs an identity that could own it: one inside a
 * group can never reach out of it.
 */
export function foundingProblem(caller: Caller): string | undefined {
  if (parentOf(caller.uid) !== ROOT) {
    return 'an identity that belongs to a group cannot create an organization; name a parent group';
  }
  if (caller.reach([Capability.CAP_IAM_GROUPS_CREATE]).length === 0) {
    return 'creating an organization needs groups.create in some group';
  }
  return undefined;
}

/** Whoever creates an organization owns it; whoever runs the server runs it too. */
export const founderRole = (caller: Caller): BuiltinRole =>
  caller.reach(listOf(OPERATOR.capabilities)).length > 0 ? OPERATOR : OWNER;

/** The place of a new organization, for those who may create one. */
export function founding({ caller }: WriteContext): string {
  const problem = foundingProblem(caller);
  if (problem) throw denied(problem);
  return ROOT;
}

/** A parent is a uid, or the suffix or name of a group that the caller reaches. */
async function findParent(ctx: WriteContext, text: string): Promise<string> {
  const { db, caller, method } = ctx;
  const reach = caller.reach(method.capabilities);
  if (isUid(text)) {
    if (caller.can(method.capabilities, text)) return text;
    throw denied(`needs groups.create on ${text}`, { capabilities: 'groups.create', scope: text });
  }
  const bySuffix = /^[0-9a-f]{16}$/.test(text) ? await findByKey(db, groups, text) : undefined;
  if (bySuffix && reach.some((scope) => isWithin(bySuffix, scope))) return bySuffix;

  const [found, another] = await findByName(db, groups, reach, text);
  if (!found) throw notFound('group', text);
  if (another) throw invalid('parent', `several groups are named ${text}; give the uid instead`);
  return found;
}
