import { fromBinary } from '@bufbuild/protobuf';
import type { Uid } from '../base/uid.ts';
import { capabilitySetOf } from '../contract/capabilities.ts';
import { RoleBindingSchema } from '../contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { disabledOf } from '../domains/iam/disabled.ts';
import { canHaveRoles, isWithinOwnGroup } from '../domains/iam/groups/founder.ts';
import { identities } from '../domains/iam/identities/identities.ts';
import { builtinRole } from '../domains/iam/roles/builtin-roles.ts';
import { roleBindings } from '../domains/iam/roles/role-bindings.ts';
import { roles } from '../domains/iam/roles/roles.ts';
import { find } from '../resource/read.ts';
import type { Reader } from '../store/store.ts';
import type { Grant } from './create-caller.ts';

const FIND_BINDINGS = `SELECT r.parent AS parent, r.body AS body
  FROM reference f JOIN resource r ON r.kind = f.kind AND r.uid = f.uid
  WHERE f.kind = $1 AND f.field = 'identity' AND f.value = $2`;

/** Reads the grants of an identity by its role bindings. A disabled identity has none. */
export async function grantsOf(db: Reader, identity: string): Promise<Grant[]> {
  if (disabledOf((await find(db, identities, identity))?.state)) return [];
  const rows = await db.all<{ parent: Uid; body: Uint8Array }>(FIND_BINDINGS, roleBindings.kind, identity);
  const grants: Grant[] = [];
  for (const { parent, body } of rows) {
    const isOutside = !isWithinOwnGroup(identity, parent);
    if (isOutside && !(await canHaveRoles(db, identity, parent))) continue;
    const { roleUid } = fromBinary(RoleBindingSchema, body);
    const builtin = builtinRole(roleUid);
    const custom = builtin ? undefined : await find(db, roles, roleUid);
    grants.push({
      group: parent,
      capabilities: builtin?.capabilities ?? capabilitySetOf(custom?.message.capabilities ?? []),
      ...(isOutside && { isFounder: true }),
    });
  }
  return grants;
}
