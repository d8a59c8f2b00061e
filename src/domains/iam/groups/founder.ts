import { isWithin, type ParentUid, parentOf, ROOT, rootOf, type Uid } from '../../../base/uid.ts';
import { GroupSchema } from '../../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { find } from '../../../resource/read.ts';
import type { Reader } from '../../../store/store.ts';

/** The private state of an organization, and the reference, that names the identity that created it. */
export const FOUNDER = 'founder';

/** Not the resource itself, which imports this file. */
const GROUP = { kind: 'group', schema: GroupSchema };

/** The private state of the organization that `uid` is in. */
export const organizationState = async (db: Reader, uid: string) => (await find(db, GROUP, rootOf(uid)))?.state;

/** Whether `group` is one that an identity can have roles at without having founded anything. */
export const isWithinOwnGroup = (identity: string, group: string): boolean => {
  const identityGroup = parentOf(identity);
  return identityGroup === ROOT || isWithin(group, identityGroup);
};

/**
 * Whether role bindings of an identity have an effect at `group`. A person can have roles everywhere. An identity that
 * belongs to a group can have them in that group, and in the organizations that it has founded.
 */
export const canHaveRoles = async (db: Reader, identity: string, group: string): Promise<boolean> =>
  isWithinOwnGroup(identity, group) || (await organizationState(db, group))?.[FOUNDER] === identity;

/**
 * The group at which a caller must hold the capabilities of a role binding to decide about its identity: to delete it, or
 * to change its credentials. For a role in an organization that the identity has founded this is the group of the
 * identity, because its owners control the identity and need no access to what it has founded.
 */
export const controllingGroup = (identity: Uid, bound: ParentUid): ParentUid =>
  isWithinOwnGroup(identity, bound) ? bound : parentOf(identity);
