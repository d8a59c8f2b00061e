import { create } from '@bufbuild/protobuf';
import { alreadyExists, invalid, renamingFields } from '../../../base/errors.ts';
import { type ParentUid, parentOf, ROOT, type Uid } from '../../../base/uid.ts';
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
import { type Operations, type WriteContext, writeOperation } from '../../../resource/operation.ts';
import { find, findByKey } from '../../../resource/read.ts';
import { createResource, standardOperations } from '../../../resource/standard-methods.ts';
import { canBeOwner, requireOwnersRemain } from '../access/last-owner.ts';
import { canHaveRoles } from '../groups/founder.ts';
import { identities } from '../identities/identities.ts';
import { hydrateBindings } from './hydrate-bindings.ts';
import { bindingKey, DUPLICATE_BINDING, roleBindings } from './role-bindings.ts';
import { requireAssignable, requireRoleRevocable } from './roles.ts';

const MAX_BATCH = 25;

/** Role bindings with the checks and the hydration that need identities, groups and roles. */
const roleBindingsWithChecks: Resource<typeof RoleBindingSchema> = {
  ...roleBindings,
  beforeCreate: (ctx, binding, { uid, parent }) => requireValidBinding(ctx, binding, uid, parent),
  async beforeUpdate(ctx, before, binding) {
    const { uid, parent } = before;
    await requireRoleRevocable(ctx, before.message.roleUid, parent);
    await requireValidBinding(ctx, binding, uid, parent);
    if (!(await keepsOwner(ctx, before.message, binding))) await requireOwnersRemain(ctx, [before]);
    return undefined;
  },
  async beforeDelete(ctx, binding) {
    await requireRoleRevocable(ctx, binding.message.roleUid, binding.parent);
    await requireOwnersRemain(ctx, [binding]);
  },
  present: hydrateBindings,
};

export const roleBindingOperations = (engine: Engine): Operations => ({
  ...standardOperations(engine, roleBindingsWithChecks, RoleBindingsService),
  ...batchCreateRoleBindings,
});

async function requireValidBinding(
  ctx: WriteContext,
  binding: RoleBinding,
  uid: Uid,
  group: ParentUid,
): Promise<undefined> {
  const { identityUid, roleUid } = binding;
  const identityGroup = parentOf(identityUid);
  // Before the lookup, so that the caller cannot find out which identities exist in groups that it has no access to.
  if (!(await canHaveRoles(ctx.db, identityUid, group))) {
    throw invalid(
      'identity_uid',
      `an identity can have roles only in its own group and below, and in organizations that it has created; this one is in ${identityGroup}`,
    );
  }
  const identity = await find(ctx.db.forShare, identities, identityUid);
  // A person need not be registered yet: an error would tell any caller which people are. The role takes effect when the
  // person registers, because the uid follows from issuer and subject.
  if (!identity && identityGroup !== ROOT) throw invalid('identity_uid', `there is no identity ${identityUid}`);
  await requireAssignable(ctx, 'role_uid', roleUid, group);
  const duplicate = await findByKey(ctx.db, roleBindings, bindingKey(binding, group));
  if (duplicate !== undefined && duplicate !== uid) {
    throw alreadyExists(roleBindings.kind, duplicate, `${DUPLICATE_BINDING}, by ${duplicate}`);
  }
}

/** Whether the binding gives the same role after the update, to an identity that can log in. */
const keepsOwner = async ({ db, now }: WriteContext, before: RoleBinding, after: RoleBinding): Promise<boolean> =>
  before.roleUid === after.roleUid && (await canBeOwner(db, after.identityUid, now));

/** Creates all bindings of the batch or none, in one transaction. */
const batchCreateRoleBindings = writeOperation(RoleBindingsService.method.batchCreateRoleBindings, {
  async run(ctx, batch) {
    if (batch.requests.length > MAX_BATCH) throw invalid('requests', `must be at most ${MAX_BATCH}`);
    const created: RoleBinding[] = [];
    for (const [at, request] of batch.requests.entries()) {
      created.push(await withFieldPrefix(`requests[${at}]`, () => createInBatch(ctx, batch, request)));
    }
    return create(BatchCreateRoleBindingsResponseSchema, { roleBindings: created });
  },
  event: (_ctx, { parent }, message) => ({
    subject: parent,
    extensions: { group: parent },
    body: { schema: BatchCreateRoleBindingsResponseSchema, message },
  }),
});

/** The parent and the role of the batch apply to each request that does not set them itself (AIP-231). */
async function createInBatch(
  ctx: WriteContext,
  batch: BatchCreateRoleBindingsRequest,
  { parent, roleBinding: binding = create(RoleBindingSchema) }: CreateRoleBindingRequest,
): Promise<RoleBinding> {
  if (parent !== '' && parent !== batch.parent) throw invalid('parent', 'must be empty or the parent of the batch');
  if (batch.roleUid !== '' && binding.roleUid !== '' && binding.roleUid !== batch.roleUid) {
    throw invalid('role_binding.role_uid', 'must be empty or the role_uid of the batch');
  }
  if (batch.roleUid !== '') binding.roleUid = batch.roleUid;
  return withFieldPrefix('role_binding', () => createResource(ctx, roleBindingsWithChecks, binding, batch.parent));
}

/** Runs `work`, and prefixes the fields that its errors name with `path`. */
const withFieldPrefix = <T>(path: string, work: () => Promise<T>): Promise<T> =>
  renamingFields((field) => `${path}.${field}`, work);
