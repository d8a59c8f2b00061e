import { type FieldViolation, invalid, precondition } from '../../../base/errors.ts';
import { isUid, isWithin, type ParentUid, parentOf, parseUid, ROOT } from '../../../base/uid.ts';
import {
  type CapabilitySet,
  capabilitiesIn,
  capabilityInfo,
  capabilityName,
  capabilitySetOf,
  NO_CAPABILITIES,
} from '../../../contract/capabilities.ts';
import { Capability } from '../../../contract/gen/capabilities/capabilities_pb.js';
import { type Role, RoleSchema, RolesService } from '../../../contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { defineResource, type Stored } from '../../../resource/definition.ts';
import type { Engine } from '../../../resource/engine.ts';
import {
  type Operations,
  type ReadContext,
  readOf,
  readOperation,
  type WriteContext,
} from '../../../resource/operation.ts';
import { find } from '../../../resource/read.ts';
import { requireCapabilities } from '../../../resource/require-capabilities.ts';
import * as rules from '../../../resource/rules.ts';
import { standardOperations } from '../../../resource/standard-methods.ts';
import type { Reader } from '../../../store/store.ts';
import { requireGrantable, requireRevocable } from '../access/require-grantable.ts';
import { builtinRole } from './builtin-roles.ts';

/** The kinds that have a reference `role`. A role that one of them refers to cannot be deleted. */
export const KINDS_REFERRING_TO_ROLES = [
  'role binding',
  'group invite',
  'identity provider',
  'external group role mapping',
];

/** A named set of capabilities. Built-in roles have no parent and are visible to all callers. */
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
  beforeCreate: (ctx, role, { parent }) => checkAndNormalize(ctx, role, parent),
  beforeUpdate(ctx, { parent, message: before }, role) {
    // An update that reduces the role takes capabilities away from its holders.
    requireRevocable(ctx, capabilitySetOf(before.capabilities), parent);
    return checkAndNormalize(ctx, role, parent);
  },
  beforeDelete: refuseInUse,
});

function capabilityProblems(capabilities: readonly Capability[]): FieldViolation[] {
  const allowsInternal = capabilities.includes(Capability.CAP_INTERNAL);
  return capabilities.flatMap((capability, at) => {
    const info = capabilityInfo(capability);
    const field = `capabilities[${at}]`;
    if (!info) return [{ field, description: `${Capability[capability] ?? capability} is not a capability` }];
    if (!info.internalOnly || allowsInternal) return [];
    return [
      { field, description: `${info.name} requires ${capabilityName(Capability.CAP_INTERNAL)} in the same role` },
    ];
  });
}

/** Refuses capabilities that the caller cannot grant. Sorts the others by number, without duplicates. */
function checkAndNormalize(ctx: WriteContext, role: Role, group: ParentUid): undefined {
  const capabilities = capabilitySetOf(role.capabilities);
  requireGrantable(ctx, capabilities, group);
  role.capabilities = capabilitiesIn(capabilities);
}

// Descending, so that the error names role bindings rather than any other kind.
const FIND_REFERRING_KIND = `SELECT kind FROM reference
  WHERE kind IN (${KINDS_REFERRING_TO_ROLES.map((_, i) => `$${i + 2}`).join(', ')}) AND field = 'role' AND value = $1
  ORDER BY kind DESC LIMIT 1`;

async function refuseInUse({ db }: WriteContext, { uid }: Stored<Role>): Promise<void> {
  const referring = await db.get<{ kind: string }>(FIND_REFERRING_KIND, uid, ...KINDS_REFERRING_TO_ROLES);
  if (referring) throw precondition('RESOURCE_IN_USE', uid, `cannot delete role with ${referring.kind}s`);
}

/** The capabilities of a role; undefined when it does not exist. */
export async function capabilitiesOf(db: Reader, uid: string): Promise<CapabilitySet | undefined> {
  const builtin = builtinRole(uid);
  if (builtin) return builtin.capabilities;
  const role = (await find(db, roles, uid))?.message;
  return role && capabilitySetOf(role.capabilities);
}

/**
 * Refuses a role that the caller cannot assign at `group`. The role must be built in, or belong to `group` or one of
 * its ancestors, and the caller must hold all its capabilities. `field` is the request field that names the role.
 */
export async function requireAssignable(
  ctx: WriteContext,
  field: string,
  uid: string,
  group: ParentUid,
): Promise<void> {
  if (!isUid(uid)) throw invalid(field, 'must be the uid of a role');
  const roleGroup = parentOf(uid);
  if (roleGroup !== ROOT && !isWithin(group, roleGroup)) {
    throw invalid(field, `must be a built-in role, or a role of ${group} or of a group above it`);
  }
  const capabilities = await capabilitiesOf(ctx.db.forShare, uid);
  if (capabilities === undefined) throw invalid(field, `there is no role ${uid}`);
  requireGrantable(ctx, capabilities, group);
}

/**
 * Refuses to change or delete something that gives the role `uid` at `group`, unless the caller holds all capabilities of
 * the role there: a role binding, invite, default role or mapping.
 */
export async function requireRoleRevocable(
  { db, caller }: Pick<WriteContext, 'db' | 'caller'>,
  uid: string,
  group: ParentUid,
): Promise<void> {
  requireRevocable({ caller }, (await capabilitiesOf(db, uid)) ?? NO_CAPABILITIES, group);
}

/** GetRole is unscoped in the contract, because built-in roles belong to no group. All other roles are checked here. */
function requireReadable(ctx: ReadContext, requestedUid: string): void {
  const uid = parseUid('uid', requestedUid);
  if (!builtinRole(uid)) requireCapabilities(ctx.method.capabilities, ctx.caller, uid);
}

export function roleOperations(engine: Engine): Operations {
  const standard = standardOperations(engine, roles, RolesService);
  const readRole = readOf(standard, RolesService.method.getRole);
  return {
    ...standard,
    ...readOperation(RolesService.method.getRole, (ctx, request) => {
      requireReadable(ctx, request.uid);
      return readRole(ctx, request);
    }),
  };
}
