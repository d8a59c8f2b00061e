import type { Message } from '@bufbuild/protobuf';
import { type FieldViolation, invalid, precondition } from '../../../base/errors.ts';
import { isUid, isWithin, parentOf, ROOT } from '../../../base/uid.ts';
import { type CapabilitySet, infoOf, listOf, nameOf, setOf } from '../../../contract/capabilities.ts';
import { Capability } from '../../../contract/gen/capabilities/capabilities_pb.js';
import {
  type GetRoleRequest,
  type Role,
  RoleSchema,
  RolesService,
} from '../../../contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { defineResource, type Stored } from '../../../resource/definition.ts';
import type { Engine } from '../../../resource/engine.ts';
import type { Operation, Operations, ReadContext, WriteContext } from '../../../resource/operation.ts';
import { find, findAll } from '../../../resource/read.ts';
import * as rules from '../../../resource/rules.ts';
import { standardOperations } from '../../../resource/standard-methods.ts';
import type { Reader } from '../../../store/store.ts';
import { requireGrantable } from '../access/escalation.ts';
import { requireAt } from '../access/unscoped.ts';
import { builtinRole } from './builtin-roles.ts';

/** The kinds that name a role in their reference `role`. As long as one of them does, the role stays. */
export const ROLE_USERS = ['role binding', 'group invite', 'identity provider', 'external group role mapping'];

/** A named set of capabilities. Built-in roles stand at the root and are known to everybody. */
export const roles = defineResource({
  kind: 'role',
  plural: 'roles',
  schema: RoleSchema,
  parents: ['group'],
  rootIsPublic: true,
  grantsAccess: 'unless new',
  rules: { name: rules.name(), description: rules.description },
  check: ({ capabilities }) => capabilityProblems(capabilities),
  orders: { name: (role) => role.name },
  beforeCreate: (ctx, role, { parent }) => settle(ctx, role, parent),
  beforeUpdate: (ctx, { parent }, role) => settle(ctx, role, parent),
  beforeDelete: refuseInUse,
});

function capabilityProblems(capabilities: readonly Capability[]): FieldViolation[] {
  const allowsInternal = capabilities.includes(Capability.CAP_INTERNAL);
  return capabilities.flatMap((capability, at) => {
    const info = infoOf(capability);
    const field = `capabilities[${at}]`;
    if (!info) return [{ field, description: `${Capability[capability] ?? capability} is not a capability` }];
    if (!info.internalOnly || allowsInternal) return [];
    return [{ field, description: `${info.name} needs ${nameOf(Capability.CAP_INTERNAL)} beside it` }];
  });
}

/** Each capability once, by number, and none that the caller does not hold. */
function settle(ctx: WriteContext, role: Role, group: string): undefined {
  const capabilities = setOf(role.capabilities);
  requireGrantable(ctx, capabilities, group);
  role.capabilities = listOf(capabilities);
}

// Descending, so that role bindings are named before all else.
const FIND_USER = `SELECT kind FROM reference
  WHERE kind IN (${ROLE_USERS.map((_, i) => `$${i + 2}`).join(', ')}) AND field = 'role' AND value = $1
  ORDER BY kind DESC LIMIT 1`;

async function refuseInUse({ db }: WriteContext, { uid }: Stored): Promise<void> {
  const user = await db.get<{ kind: string }>(FIND_USER, uid, ...ROLE_USERS);
  if (user) throw precondition('RESOURCE_IN_USE', uid, `cannot delete role with ${user.kind}s`);
}

/** Those of these roles that there are, by uid. */
export async function findRoles(db: Reader, uids: readonly string[]): Promise<ReadonlyMap<string, Role>> {
  const found = await findAll(db, roles, [...new Set(uids)]);
  return new Map(found.map(({ uid, message }) => [uid, message as Role]));
}

/** The capabilities of a role; undefined when there is no such role. */
export async function capabilitiesOf(db: Reader, uid: string): Promise<CapabilitySet | undefined> {
  const builtin = builtinRole(uid);
  if (builtin) return builtin.capabilities;
  const role = (await find(db, roles, uid))?.message;
  return role && setOf(role.capabilities);
}

/**
 * Refuses a role that the caller cannot hand out at `group`: it must be built in or belong to that group or one above,
 * and the caller must hold all that it allows. `field` is where the request names it.
 */
export async function requireAssignable(ctx: WriteContext, field: string, uid: string, group: string): Promise<void> {
  if (!isUid(uid)) throw invalid(field, 'must be the uid of a role');
  const home = parentOf(uid);
  if (home !== ROOT && !isWithin(group, home)) {
    throw invalid(field, `must be a built-in role or one of ${group} or a group above it`);
  }
  const capabilities = await capabilitiesOf(ctx.db.forShare, uid);
  if (capabilities === undefined) throw invalid(field, `there is no role ${uid}`);
  requireGrantable(ctx, capabilities, group);
}

/** Reading a role is not scoped in the contract, since built-in roles lie in no group; the others are checked here. */
function requireReadable(ctx: ReadContext, uid: string): void {
  if (!isUid(uid)) throw invalid('uid', 'must be a uid: 40 hex digits, then /-separated parts of 16');
  if (!builtinRole(uid)) requireAt(ctx, uid);
}

export function roleOperations(engine: Engine): Operations {
  const standard = standardOperations(engine, roles, RolesService);
  const id = `${RolesService.typeName}/${RolesService.method.getRole.name}`;
  const get = standard[id] as Extract<Operation, { mode: 'read' }>;
  const run = (ctx: ReadContext, request: Message) => {
    requireReadable(ctx, (request as GetRoleRequest).uid);
    return get.run(ctx, request);
  };
  return { ...standard, [id]: { mode: 'read', run } };
}
