import { type ApiError, precondition } from '../../../base/errors.ts';
import { parentOf, ROOT, type Uid } from '../../../base/uid.ts';
import { IdentitySchema } from '../../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import type { RoleBinding } from '../../../contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import type { Stored } from '../../../resource/definition.ts';
import type { WriteContext } from '../../../resource/operation.ts';
import { find, findReferring, findReferringBelow, findUid } from '../../../resource/read.ts';
import type { Reader } from '../../../store/store.ts';
import { isEnabled } from '../disabled.ts';
import { FIRST_ORGANIZATION } from '../groups/first-organization.ts';
import { canLogIn } from '../identities/relationship.ts';
import { OPERATOR, OWNER } from '../roles/builtin-roles.ts';
import { roleBindings } from '../roles/role-bindings.ts';

// An owner of an organization is an identity with the built-in role owner or operator at the organization itself. Roles
// that people have through the groups of their identity provider do not count, because nothing here says who has them.

/** Not the resource itself, which imports this file. */
const IDENTITY = { kind: 'identity', schema: IdentitySchema };

type Context = Pick<WriteContext, 'db' | 'now'>;
type Binding = Pick<Stored<RoleBinding>, 'uid' | 'parent' | 'message'>;

const isAtOrganization = ({ parent }: { readonly parent: string }): boolean => parentOf(parent) === ROOT;
const isOwner = ({ message: { roleUid } }: Binding): boolean => roleUid === OWNER.uid || isOperator(roleUid);
const isOperator = (roleUid: string): boolean => roleUid === OPERATOR.uid;

/**
 * Refuses to remove or weaken `leaving` if an organization would have no owner left, or the server no operator. Takes a
 * lock that all such removals share, so that of two last owners who are removed at the same time one remains.
 */
export async function requireOwnersRemain(ctx: Context, leaving: readonly Binding[]): Promise<void> {
  const owners = leaving.filter((binding) => isAtOrganization(binding) && isOwner(binding));
  const uids = new Set(leaving.map(({ uid }) => uid));
  for (const organization of [...new Set(owners.map(({ parent }) => parent))].sort()) {
    // The lock of the organization comes before the reads, so that they see what others have removed.
    await findUid(ctx.db.forUpdate, 'group', organization);
    if (!(await hasOtherOwner(ctx, organization, uids))) throw lastOwner(organization);
  }
  await requireOperatorsRemain(ctx, owners, lastOperator);
}

/** Refuses to delete an organization with the role binding `founder` if the server would have no operator left. */
export const requireOperatorsRemainWithout = (ctx: Context, founder: Binding): Promise<void> =>
  requireOperatorsRemain(ctx, [founder], lastOrganization);

async function requireOperatorsRemain(
  ctx: Context,
  leaving: readonly Binding[],
  problem: (organization: string) => ApiError,
): Promise<void> {
  const last = leaving.find(({ message }) => isOperator(message.roleUid));
  if (!last) return;
  await ctx.db.forUpdate.get('SELECT value FROM setting WHERE key = $1', FIRST_ORGANIZATION);
  const all = (await findReferring(ctx.db, roleBindings, 'role', OPERATOR.uid)).filter(
    (uid) => isAtOrganization({ parent: parentOf(uid) }) && !leaving.some((binding) => binding.uid === uid),
  );
  if (!(await someCanBeOwner(ctx, all))) throw problem(last.parent);
}

async function hasOtherOwner(ctx: Context, organization: string, leaving: ReadonlySet<string>): Promise<boolean> {
  for (const role of [OWNER, OPERATOR]) {
    const below = await findReferringBelow(ctx.db, roleBindings, 'role', role.uid, organization);
    const others = below.filter((uid) => parentOf(uid) === organization && !leaving.has(uid));
    if (await someCanBeOwner(ctx, others)) return true;
  }
  return false;
}

async function someCanBeOwner({ db, now }: Context, bindings: readonly Uid[]): Promise<boolean> {
  for (const uid of bindings) {
    const binding = await find(db, roleBindings, uid);
    if (binding && (await canBeOwner(db, binding.message.identityUid, now))) return true;
  }
  return false;
}

/**
 * Whether an identity counts as an owner. It must not be disabled, and a machine must have a login that has not expired. A
 * person who is not registered counts: otherwise this would tell an owner whether any uid belongs to a registered person.
 */
export async function canBeOwner(db: Reader, identity: string, now: number): Promise<boolean> {
  const stored = await find(db, IDENTITY, identity);
  if (!stored) return parentOf(identity) === ROOT;
  return isEnabled(stored) && (stored.parent === ROOT || canLogIn(stored.message.relationship, now));
}

const lastOwner = (organization: string): ApiError =>
  precondition(
    'LAST_OWNER',
    organization,
    `this would leave the organization ${organization} without an owner; give the role owner there to another identity first, or delete the organization`,
  );

const lastOperator = (organization: string): ApiError =>
  precondition(
    'LAST_OPERATOR',
    organization,
    'this would leave the server without an operator; give the role operator at an organization to another identity first',
  );

const lastOrganization = (organization: string): ApiError =>
  precondition(
    'LAST_OPERATOR',
    organization,
    'this is the last organization with an operator, and without it the server would have none; create another organization first',
  );
