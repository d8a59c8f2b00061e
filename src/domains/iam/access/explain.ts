import { create } from '@bufbuild/protobuf';
import { denied, invalid } from '../../../base/errors.ts';
import { ancestorsOf, isWithin, parentOf, parseUid, type Uid } from '../../../base/uid.ts';
import { capabilityByName, capabilityName, hasCapability, NO_CAPABILITIES } from '../../../contract/capabilities.ts';
import { Capability } from '../../../contract/gen/capabilities/capabilities_pb.js';
import type { RoleBinding } from '../../../contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import {
  AccessService,
  type ExplainRequest,
  ExplainResponseSchema,
} from '../../../contract/gen/wharfinger/access/v1/access_pb.js';
import type { Stored } from '../../../resource/definition.ts';
import { type ReadContext, readOperation } from '../../../resource/operation.ts';
import { findAll } from '../../../resource/read.ts';
import { canHaveRoles, isWithinOwnGroup } from '../groups/founder.ts';
import { groups } from '../groups/groups.ts';
import { builtinRoles } from '../roles/builtin-roles.ts';
import { hydrateBindings } from '../roles/hydrate-bindings.ts';
import { bindingsOf } from '../roles/role-bindings.ts';
import { capabilitiesOf } from '../roles/roles.ts';

/** Whether `identity` holds `capability` at `uid`. */
interface AccessQuery {
  readonly identity: string;
  /** Whether `identity` is the caller. */
  readonly isSelf: boolean;
  readonly capability: Capability;
  readonly uid: Uid;
  /** Whether role bindings of the identity have an effect at `uid`. */
  readonly canHaveRoles: boolean;
}

export const explainOperations = readOperation(AccessService.method.explain, async (ctx, request) => {
  const parsed = parseQuery(ctx, request);
  const query = { ...parsed, canHaveRoles: await canHaveRoles(ctx.db, parsed.identity, parsed.uid) };
  const { identity, isSelf, capability, uid } = query;
  const granting = await grantingBindings(ctx, query);
  // A restricted token shows no more of its own identity than of any other.
  const bindings = ctx.caller.isRestricted
    ? granting.filter(({ parent }) => ctx.caller.can([READ_BINDINGS], parent))
    : granting;
  // A token can add to the role bindings or restrict them. Only the token of the caller is known here.
  const allowed = isSelf ? ctx.caller.can([capability], uid) : bindings.length > 0;
  const isTokenRestricted = isSelf && ctx.caller.isRestricted;
  const wouldBindingHelp = !allowed && !isTokenRestricted && bindings.length === 0 && query.canHaveRoles;
  return create(ExplainResponseSchema, {
    identity,
    allowed,
    explanation: explain(ctx, query, allowed, bindings),
    bindings: bindings.map((binding) => visibleFields(ctx, query, binding)),
    ...(wouldBindingHelp && { groups: await helpfulGroups(ctx, query), roles: helpfulRoles(capability) }),
  });
});

const READ_BINDINGS = Capability.CAP_IAM_ROLE_BINDINGS_LIST;

function parseQuery({ caller }: ReadContext, request: ExplainRequest): Omit<AccessQuery, 'canHaveRoles'> {
  const capability = capabilityByName(request.capability);
  if (capability === undefined) {
    throw invalid('capability', 'must be the dotted name of a capability, such as groups.list');
  }
  const uid = parseUid('uid', request.uid);
  const identity = request.identity === '' ? caller.uid : parseUid('identity', request.identity);
  const isSelf = identity === caller.uid;
  if (!isSelf && !caller.can([READ_BINDINGS], uid)) {
    throw denied(`explaining the access of another identity needs ${capabilityName(READ_BINDINGS)} on ${uid}`, {
      capabilities: capabilityName(READ_BINDINGS),
      scope: uid,
    });
  }
  return { identity, isSelf, capability, uid };
}

/** The role bindings that give the capability at the uid, the outermost first. */
async function grantingBindings(
  { db }: ReadContext,
  { identity, capability, uid }: AccessQuery,
): Promise<Stored<RoleBinding>[]> {
  const found: Stored<RoleBinding>[] = [];
  for (const stored of await bindingsOf(db, identity)) {
    const { parent, message } = stored;
    if (!isWithin(uid, parent) || !(await canHaveRoles(db, identity, parent))) continue;
    const capabilities = (await capabilitiesOf(db, message.roleUid)) ?? NO_CAPABILITIES;
    if (hasCapability(capabilities, capability)) found.push(stored);
  }
  await hydrateBindings(
    { db },
    found.map(({ message }) => message),
  );
  return found.sort((a, b) => a.uid.length - b.uid.length);
}

/** The fields of a binding that the caller may see. A binding at an ancestor may be one that the caller cannot read. */
function visibleFields({ caller }: ReadContext, { isSelf }: AccessQuery, binding: Stored<RoleBinding>) {
  const { uid, parent: groupUid, message } = binding;
  const { roleUid, role } = message;
  const isReadable = (isSelf && !caller.isRestricted) || caller.can([READ_BINDINGS], groupUid);
  return isReadable ? { uid, groupUid, roleUid, roleName: role?.name ?? '' } : { groupUid };
}

/**
 * The groups at which a role binding would give the capability: the uid and its ancestors, without those that are not
 * groups. A uid that the caller cannot read stays in, so that the response does not tell whether such a group exists.
 */
async function helpfulGroups({ db, caller }: ReadContext, { identity, uid }: AccessQuery): Promise<Uid[]> {
  // If the identity has founded the organization, it can have roles at all groups in it.
  const isFounder = !isWithinOwnGroup(identity, uid);
  const candidates = [...ancestorsOf(uid), uid]
    .filter((candidate) => isFounder || isWithinOwnGroup(identity, candidate))
    .reverse();
  const existing = new Set((await findAll(db, groups, candidates)).map((group) => group.uid));
  return candidates.filter(
    (candidate) => existing.has(candidate) || !caller.can([Capability.CAP_IAM_GROUPS_LIST], candidate),
  );
}

const helpfulRoles = (capability: Capability) =>
  builtinRoles
    .filter(({ capabilities }) => hasCapability(capabilities, capability))
    .map(({ uid, name }) => ({ uid, name }));

function explain(
  { caller }: ReadContext,
  query: AccessQuery,
  allowed: boolean,
  bindings: readonly Stored<RoleBinding>[],
): string {
  if (!query.isSelf || !caller.isRestricted || (allowed && bindings.length > 0)) {
    return allowed ? explainAllowed(query, bindings) : explainRefused(query, bindings);
  }
  const access = `${capabilityName(query.capability)} on ${query.uid}`;
  return allowed
    ? `The token gives ${access}.`
    : `The token does not give ${access}. It is restricted: send one without scopes and capabilities to see more.`;
}

function explainAllowed({ capability, uid }: AccessQuery, [outermost]: readonly Stored<RoleBinding>[]): string {
  const access = `${capabilityName(capability)} on ${uid}`;
  return outermost
    ? `A role binding on ${outermost.parent} gives ${access}.`
    : `The token gives ${access}: it names groups of an identity provider that are mapped to a role.`;
}

function explainRefused(query: AccessQuery, bindings: readonly Stored<RoleBinding>[]): string {
  const { identity, capability, uid } = query;
  const access = `${capabilityName(capability)} on ${uid}`;
  if (bindings.length > 0) {
    return `A role binding gives ${access}, but this token is restricted to less. Get one without scopes and capabilities.`;
  }
  if (!query.canHaveRoles) {
    return `The identity belongs to ${parentOf(identity)} and has no access outside of it. Use one that belongs to a group above ${uid}, or to none.`;
  }
  return helpfulRoles(capability).length > 0
    ? `No role binding gives ${access}. Ask an owner for one of these roles, there or above.`
    : `No role binding gives ${access}, and no built-in role holds it. Ask an owner for a role that does, there or above.`;
}
