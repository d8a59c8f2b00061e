import { create } from '@bufbuild/protobuf';
import { ApiError, alreadyExists, invalid, invalidFields } from '../../../base/errors.ts';
import { isWithin, parentOf, ROOT } from '../../../base/uid.ts';
import {
  type BatchCreateRoleBindingsRequest,
  BatchCreateRoleBindingsResponseSchema,
  type CreateRoleBindingRequest,
  type RoleBinding,
  RoleBindingSchema,
  RoleBindingsService,
} from '../../../contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import type { Resource } from '../../../resource/definition.ts';
import type { Engine } from '../../../resource/engine.ts';
import type { Operation, Operations, WriteContext } from '../../../resource/operation.ts';
import { find, findByKey } from '../../../resource/read.ts';
import { createResource, standardOperations } from '../../../resource/standard-methods.ts';
import { identities } from '../identities/identities.ts';
import { hydrateBindings } from './hydrate-bindings.ts';
import { bindingKey, roleBindings, TAKEN } from './role-bindings.ts';
import { requireAssignable } from './roles.ts';

const MAX_BATCH = 25;

/** Role bindings with the rules about the identities, groups and roles that they bind together. */
const governed: Resource<typeof RoleBindingSchema> = {
  ...roleBindings,
  beforeCreate: (ctx, binding, { uid, parent }) => requireBindable(ctx, binding, uid, parent),
  beforeUpdate: (ctx, { uid, parent }, binding) => requireBindable(ctx, binding, uid, parent),
  present: hydrateBindings,
};

export const roleBindingOperations = (engine: Engine): Operations => ({
  ...standardOperations(engine, governed, RoleBindingsService),
  [`${RoleBindingsService.typeName}/${RoleBindingsService.method.batchCreateRoleBindings.name}`]: batchCreate,
});

async function requireBindable(
  ctx: WriteContext,
  binding: RoleBinding,
  uid: string,
  group: string,
): Promise<undefined> {
  const { identityUid, roleUid } = binding;
  const home = parentOf(identityUid);
  // Before looking it up, so that nobody learns what exists in groups that are not theirs.
  if (home !== ROOT && !isWithin(group, home)) {
    throw invalid('identity_uid', `an identity can have roles only in its own group and below; this one is in ${home}`);
  }
  const identity = await find(ctx.db.forShare, identities, identityUid);
  if (!identity) throw invalid('identity_uid', `there is no identity ${identityUid}`);
  await requireAssignable(ctx, 'role_uid', roleUid, group);
  const twin = await findByKey(ctx.db, roleBindings, bindingKey(binding, group));
  if (twin !== undefined && twin !== uid) throw alreadyExists(roleBindings.kind, twin, `${TAKEN}, by ${twin}`);
}

/** All or none, since they share the transaction. */
const batchCreate: Operation = {
  mode: 'write',
  async run(ctx, request) {
    const batch = request as BatchCreateRoleBindingsRequest;
    if (batch.requests.length > MAX_BATCH) throw invalid('requests', `must be at most ${MAX_BATCH}`);
    const created: RoleBinding[] = [];
    for (const [at, each] of batch.requests.entries()) {
      created.push(await prefixed(`requests[${at}]`, () => createInBatch(ctx, batch, each)));
    }
    return create(BatchCreateRoleBindingsResponseSchema, { roleBindings: created });
  },
  event(_ctx, request, message) {
    const { parent } = request as BatchCreateRoleBindingsRequest;
    const body = { schema: BatchCreateRoleBindingsResponseSchema, message };
    return { subject: parent, extensions: { group: parent }, body };
  },
};

/** What a request leaves out, the batch says for all of them (AIP-231). */
async function createInBatch(
  ctx: WriteContext,
  { parent, roleUid }: BatchCreateRoleBindingsRequest,
  { parent: ownParent, roleBinding: binding = create(RoleBindingSchema) }: CreateRoleBindingRequest,
): Promise<RoleBinding> {
  if (ownParent !== '' && ownParent !== parent) throw invalid('parent', 'must be empty or the parent of the batch');
  if (roleUid !== '' && binding.roleUid !== '' && binding.roleUid !== roleUid) {
    throw invalid('role_binding.role_uid', 'must be empty or the role_uid of the batch');
  }
  if (roleUid !== '') binding.roleUid = roleUid;
  return (await prefixed('role_binding', () => createResource(ctx, governed, binding, parent))) as RoleBinding;
}

/** Complaints about a part of the request name the way to it. */
async function prefixed<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const found = error instanceof ApiError && error.details.find((detail) => detail.type === 'BadRequest');
    if (!found) throw error;
    const { fieldViolations } = found;
    throw invalidFields(fieldViolations.map(({ field, description }) => ({ field: `${path}.${field}`, description })));
  }
}
