import { denied } from '../../../base/errors.ts';
import { parentOf, ROOT, rootOf } from '../../../base/uid.ts';
import { capabilitiesIn } from '../../../contract/capabilities.ts';
import { Capability } from '../../../contract/gen/capabilities/capabilities_pb.js';
import type { Caller } from '../../../resource/caller.ts';
import type { State } from '../../../resource/definition.ts';
import type { WriteContext } from '../../../resource/operation.ts';
import { exists, find } from '../../../resource/read.ts';
import type { Reader } from '../../../store/store.ts';
import { type BuiltinRole, OPERATOR, OWNER } from '../roles/builtin-roles.ts';
import { roleBindings } from '../roles/role-bindings.ts';
import { FOUNDER, organizationState } from './founder.ts';

/** Refuses a caller that cannot create an organization. */
export function requireCanCreateOrganization({ caller }: Pick<WriteContext, 'caller'>): void {
  const problem = createOrganizationProblem(caller);
  if (problem) throw denied(problem);
}

/** Why the caller cannot create an organization; undefined when it can. */
export function createOrganizationProblem(caller: Caller): string | undefined {
  // The founder would get more than the token allows.
  if (caller.isRestricted) {
    return 'a token that is restricted by scopes or capabilities cannot create an organization; send another one';
  }
  if (caller.reach([Capability.CAP_IAM_GROUPS_CREATE]).length === 0) {
    return 'creating an organization needs groups.create on some group; ask an owner for a role with it';
  }
  return undefined;
}

/** The private state of an organization that was created by an identity of another one: whose quota it counts for. */
const QUOTA_HOLDER = 'quotaHolder';

/** The values of the reference by which the organizations of a quota are counted. */
export const quotaReference = (state: State | undefined): string[] => [
  String(state?.[QUOTA_HOLDER] ?? state?.[FOUNDER] ?? ''),
];

const LOCK = "SELECT uid FROM resource WHERE kind IN ('identity', 'group') AND uid = $1";
const COUNT = 'SELECT count(*) AS n FROM reference WHERE kind = $1 AND field = $2 AND value = $3';

/**
 * Refuses a caller that has created as many organizations as one identity may. Operators of the server are exempt.
 * Returns the part of the private state of the new organization that says who has founded it.
 */
export async function countOrganization({ db, caller }: WriteContext): Promise<State> {
  const holder = await quotaHolderOf(db, caller.uid);
  const state = { [FOUNDER]: caller.uid, ...(holder !== caller.uid && { [QUOTA_HOLDER]: holder }) };
  const limit = db.quotas?.limits.organizations ?? Infinity;
  if (limit === Infinity || isOperator(caller)) return state;
  // The organizations of one quota are created one after the other, so that the count is exact.
  await db.forUpdate.get(LOCK, holder);
  const { n = 0 } = (await db.get<{ n: number }>(COUNT, 'group', FOUNDER, holder)) ?? {};
  if (n < limit) return state;
  const isOrganization = await exists(db, 'group', holder);
  throw db.quotas?.refuse(
    'organizations',
    `${isOrganization ? 'organization' : 'identity'}:${holder}`,
    holder === caller.uid
      ? `an identity may create ${limit} organizations; delete one, or ask an operator of the server to raise the limit`
      : `the identities of this organization, and its founder, may create ${limit} organizations together; delete one, or ask an operator of the server to raise the limit`,
  );
}

/**
 * Whose quota the organizations count for that an identity creates: its own if it is a person. Otherwise that of the
 * person who founded the organization of the identity, directly or through identities of organizations in between. If
 * that was an operator, who has no quota, the organization has a quota of its own.
 */
async function quotaHolderOf(db: Reader, identity: string): Promise<string> {
  if (parentOf(identity) === ROOT) return identity;
  const state = await organizationState(db, identity);
  const binding = await find(db, roleBindings, String(state?.founderBinding ?? ''));
  if (binding?.message.roleUid === OPERATOR.uid) return rootOf(identity);
  return String(state?.[QUOTA_HOLDER] ?? state?.[FOUNDER] ?? rootOf(identity));
}

/**
 * The role that the founder of an organization gets at it: OPERATOR for an operator of the server, else OWNER. An identity
 * that belongs to a group is only an operator inside of that group.
 */
export const founderRole = (caller: Caller): BuiltinRole =>
  parentOf(caller.uid) === ROOT && isOperator(caller) ? OPERATOR : OWNER;

const OPERATOR_CAPABILITIES = capabilitiesIn(OPERATOR.capabilities);

/** Whether the caller holds the role operator, or all its capabilities, at some group. */
export const isOperator = (caller: Caller): boolean => caller.reach(OPERATOR_CAPABILITIES).length > 0;

/** Refuses a caller that is no operator of the server. `change` says what only operators can do. */
export function requireOperator({ caller }: Pick<WriteContext, 'caller'>, change: string): void {
  if (!isOperator(caller)) throw denied(`only an operator of the server can ${change}`);
}
