import { denied } from '../../../base/errors.ts';
import { parentOf, ROOT } from '../../../base/uid.ts';
import { capabilitiesIn } from '../../../contract/capabilities.ts';
import { Capability } from '../../../contract/gen/capabilities/capabilities_pb.js';
import type { Caller } from '../../../resource/caller.ts';
import type { WriteContext } from '../../../resource/operation.ts';
import { type BuiltinRole, OPERATOR, OWNER } from '../roles/builtin-roles.ts';

/** Refuses a caller that cannot create an organization. */
export function requireCanCreateOrganization({ caller }: Pick<WriteContext, 'caller'>): void {
  const problem = createOrganizationProblem(caller);
  if (problem) throw denied(problem);
}

/** Why the caller cannot create an organization; undefined when it can. */
export function createOrganizationProblem(caller: Caller): string | undefined {
  // Such an identity has no access outside of its group, so it could not own the organization.
  if (parentOf(caller.uid) !== ROOT) {
    return 'an identity that belongs to a group cannot create an organization; set parent to the uid of a group';
  }
  // The founder would get more than the token allows.
  if (caller.isRestricted) {
    return 'a token that is restricted by scopes or capabilities cannot create an organization; send another one';
  }
  if (caller.reach([Capability.CAP_IAM_GROUPS_CREATE]).length === 0) {
    return 'creating an organization needs groups.create on some group; ask an owner for a role with it';
  }
  return undefined;
}

/** The reference from an organization to the identity that created it. */
export const FOUNDER = 'founder';

const LOCK_IDENTITY = "SELECT uid FROM resource WHERE kind = 'identity' AND uid = $1";
const COUNT = 'SELECT count(*) AS n FROM reference WHERE kind = $1 AND field = $2 AND value = $3';

/** Refuses a caller that has created as many organizations as one identity may. Operators of the server are exempt. */
export async function requireOrganizationQuota({ db, caller }: WriteContext): Promise<void> {
  const limit = db.quotas?.limits.organizations ?? Infinity;
  if (limit === Infinity || founderRole(caller) === OPERATOR) return;
  // The organizations of one identity are created one after the other, so that the count is exact.
  await db.forUpdate.get(LOCK_IDENTITY, caller.uid);
  const { n = 0 } = (await db.get<{ n: number }>(COUNT, 'group', FOUNDER, caller.uid)) ?? {};
  if (n < limit) return;
  throw db.quotas?.refuse(
    'organizations',
    `identity:${caller.uid}`,
    `an identity may create ${limit} organizations; delete one, or ask an operator of the server to raise the limit`,
  );
}

/** The role that the founder of an organization gets at it: OPERATOR for an operator of the server, else OWNER. */
export const founderRole = (caller: Caller): BuiltinRole => (isOperator(caller) ? OPERATOR : OWNER);

const OPERATOR_CAPABILITIES = capabilitiesIn(OPERATOR.capabilities);

/** Whether the caller holds the role operator, or all its capabilities, at some group. */
export const isOperator = (caller: Caller): boolean => caller.reach(OPERATOR_CAPABILITIES).length > 0;

/** Refuses a caller that is no operator of the server. `change` says what only operators can do. */
export function requireOperator({ caller }: Pick<WriteContext, 'caller'>, change: string): void {
  if (!isOperator(caller)) throw denied(`only an operator of the server can ${change}`);
}
