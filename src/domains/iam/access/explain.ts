import { create } from '@bufbuild/protobuf';
import { denied, invalid } from '../../../base/errors.ts';
import { ancestorsOf, isUid, isWithin, parentOf, ROOT } from '../../../base/uid.ts';
import { capabilityNamed, has, NO_CAPABILITIES, nameOf } from '../../../contract/capabilities.ts';
import { Capability } from '../../../contract/gen/capabilities/capabilities_pb.js';
import type { RoleBinding } from '../../../contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import {
  AccessService,
  type ExplainRequest,
  ExplainResponseSchema,
} from '../../../contract/gen/wharfinger/access/v1/access_pb.js';
import type { Operation, Operations, ReadContext } from '../../../resource/operation.ts';
import { findAll } from '../../../resource/read.ts';
import { groups } from '../groups/groups.ts';
import { builtinRoles } from '../roles/builtin-roles.ts';
import { hydrateBindings } from '../roles/hydrate-bindings.ts';
import { bindingsOf } from '../roles/role-bindings.ts';
import { capabilitiesOf } from '../roles/roles.ts';

/** Who is asked about, what, and where. */
interface Question {
  readonly identity: string;
  readonly isSelf: boolean;
  readonly capability: Capability;
  readonly uid: string;
}

const explain: Operation = {
  mode: 'read',
  async run(ctx, request) {
    const question = read(ctx, request as ExplainRequest);
    const { identity, isSelf, capability, uid } = question;
    const bindings = await decisiveBindings(ctx, question);
    // What the token brings along or leaves out also counts, but only the caller's own token is here to be asked.
    const allowed = isSelf ? ctx.caller.can([capability], uid) : bindings.length > 0;
    const isMissing = !allowed && bindings.length === 0 && reaches(identity, uid);
    return create(ExplainResponseSchema, {
      identity,
      allowed,
      explanation: allowed ? whyAllowed(question, bindings) : whyRefused(question, bindings),
      bindings: bindings.map((binding) => shown(ctx, question, binding)),
      ...(isMissing && { groups: await helpfulGroups(ctx, question), roles: helpfulRoles(capability) }),
    });
  },
};

export const explainOperations: Operations = {
  [`${AccessService.typeName}/${AccessService.method.explain.name}`]: explain,
};

const VIEW = Capability.CAP_IAM_ROLE_BINDINGS_LIST;

function read({ caller }: ReadContext, request: ExplainRequest): Question {
  const { uid, identity } = request;
  const capability = capabilityNamed(request.capability);
  if (capability === undefined) {
    throw invalid('capability', 'must be the dotted name of a capability, such as groups.list');
  }
  for (const [field, value] of Object.entries({ uid, identity: identity || uid })) {
    if (!isUid(value)) throw invalid(field, 'must be a uid: 40 hex digits, then /-separated parts of 16');
  }
  const isSelf = identity === '' || identity === caller.uid;
  if (!isSelf && !caller.can([VIEW], uid)) {
    throw denied(`asking about somebody else needs ${nameOf(VIEW)} on ${uid}`, {
      capabilities: nameOf(VIEW),
      scope: uid,
    });
  }
  return { identity: isSelf ? caller.uid : identity, isSelf, capability, uid };
}

/** An identity inside a group never reaches out of it, whatever it is bound to. */
const reaches = (identity: string, uid: string): boolean => {
  const home = parentOf(identity);
  return home === ROOT || isWithin(uid, home);
};

/** The bindings that give the capability at the place, the outermost first. */
async function decisiveBindings({ db }: ReadContext, { identity, capability, uid }: Question): Promise<RoleBinding[]> {
  const found: RoleBinding[] = [];
  for (const { parent, message } of await bindingsOf(db, identity)) {
    if (!isWithin(uid, parent) || !reaches(identity, parent)) continue;
    const binding = message as RoleBinding;
    const given = (await capabilitiesOf(db, binding.roleUid)) ?? NO_CAPABILITIES;
    if (has(given, capability)) found.push(binding);
  }
  await hydrateBindings({ db }, found);
  return found.sort((a, b) => a.uid.length - b.uid.length);
}

/** Who may ask about somebody may yet not read what is bound further up. */
function shown({ caller }: ReadContext, { isSelf }: Question, { uid, roleUid, role }: RoleBinding) {
  const groupUid = parentOf(uid);
  return isSelf || caller.can([VIEW], groupUid) ? { uid, groupUid, roleUid, roleName: role?.name ?? '' } : { groupUid };
}

/** Where a binding would help: here and above, as far as these are groups. Of what the caller cannot see, the uid is enough. */
async function helpfulGroups({ db, caller }: ReadContext, { identity, uid }: Question): Promise<string[]> {
  const places = [...ancestorsOf(uid), uid].filter((place) => reaches(identity, place)).reverse();
  const known = new Set((await findAll(db, groups, places)).map((group) => group.uid));
  return places.filter((place) => known.has(place) || !caller.can([Capability.CAP_IAM_GROUPS_LIST], place));
}

const helpfulRoles = (capability: Capability) =>
  builtinRoles.filter(({ capabilities }) => has(capabilities, capability)).map(({ uid, name }) => ({ uid, name }));

function whyAllowed({ capability, uid }: Question, [outermost]: readonly RoleBinding[]): string {
  const what = `${nameOf(capability)} on ${uid}`;
  return outermost
    ? `A role binding on ${parentOf(outermost.uid)} gives ${what}.`
    : `The token gives ${what}: it names groups of an identity provider that are mapped to a role.`;
}

function whyRefused({ identity, capability, uid }: Question, bindings: readonly RoleBinding[]): string {
  const what = `${nameOf(capability)} on ${uid}`;
  if (bindings.length > 0) {
    return `A role binding gives ${what}, but this token was issued for less. Get one without scopes and capabilities.`;
  }
  if (!reaches(identity, uid)) {
    return `The identity belongs to ${parentOf(identity)} and never reaches out of it. Use one that belongs to a group above ${uid}, or to none.`;
  }
  return helpfulRoles(capability).length > 0
    ? `No role binding gives ${what}. Ask an owner for one of these roles, there or above.`
    : `No role binding gives ${what}, and no built-in role holds it. Ask an owner for a role that does, there or above.`;
}
