import { create } from '@bufbuild/protobuf';
import { type FieldViolation, invalid } from '../../../base/errors.ts';
import { isUid, isWithin, type ParentUid, parentOf, parseUid, rootOf, type Uid } from '../../../base/uid.ts';
import {
  BatchDeleteExternalGroupRoleMappingsResponseSchema,
  type ExternalGroupRoleMapping,
  ExternalGroupRoleMappingSchema,
  ExternalGroupRoleMappingsService,
} from '../../../contract/gen/chainguard/platform/iam/v2/external_group_role_mappings_pb.js';
import { ExternalGroupRoleMappingUpdatesService } from '../../../contract/gen/wharfinger/iam/v1/external_group_role_mapping_updates_pb.js';
import { defineResource } from '../../../resource/definition.ts';
import { deleteTree, type ResourcesByKind } from '../../../resource/delete.ts';
import type { Engine } from '../../../resource/engine.ts';
import { type Operations, type WriteContext, writeOperation } from '../../../resource/operation.ts';
import { requireParent } from '../../../resource/parent.ts';
import { find, findChildren, findReferringAny } from '../../../resource/read.ts';
import { standardOperations } from '../../../resource/standard-methods.ts';
import type { Reader } from '../../../store/store.ts';
import { groups } from '../groups/groups.ts';
import { requireAssignable, requireRoleRevocable } from '../roles/roles.ts';

/** The maximum page size of lists, so that a client can delete a page with one call. */
const MAX_BATCH = 200;

const EXTERNAL_GROUP = /^\P{Cc}{1,255}$/u;

/** Gives the members of an external group, which the tokens of an identity provider name, a role at a group. */
export const externalGroupRoleMappings = defineResource({
  kind: 'external group role mapping',
  plural: 'external group role mappings',
  schema: ExternalGroupRoleMappingSchema,
  parents: ['identity provider'],
  parentFilter: 'identity_provider_uid',
  grantsAccess: true,
  check: mappingProblems,
  unique: ({ identityProviderUid, roleUid, scope, externalGroupId }) => [
    {
      key: `${identityProviderUid} ${roleUid} ${scope} ${externalGroupId}`,
      taken: 'the external group has this role on this group already',
    },
  ],
  references: {
    role: ({ roleUid }) => [roleUid],
    external_group: ({ identityProviderUid, externalGroupId }) => [
      externalGroupKey(identityProviderUid, externalGroupId),
    ],
  },
  orders: { external_group_id: ({ externalGroupId }) => externalGroupId },
  facets: { identity_provider_uid: ({ identityProviderUid }) => [identityProviderUid] },
  event: (_change, { uid }) => ({ group: rootOf(uid), extensions: { identityprovider: parentOf(uid) } }),

  async beforeCreate(ctx, mapping, { parent }) {
    mapping.identityProviderUid = parent;
    await requireValidMapping(ctx, mapping, parent);
    return undefined;
  },

  /** As if the mapping were deleted and created again. */
  async beforeUpdate(ctx, { message: before, parent }, mapping) {
    await requireRoleRevocable(ctx, before.roleUid, scopeOf(before));
    await requireValidMapping(ctx, mapping, parent);
    return undefined;
  },
});

/** Sets the default scope. Refuses a mapping that the caller cannot create in this identity provider. */
async function requireValidMapping(
  ctx: WriteContext,
  mapping: ExternalGroupRoleMapping,
  provider: ParentUid,
): Promise<void> {
  mapping.scope ||= parentOf(provider);
  if (!isUid(mapping.scope) || !isWithin(mapping.scope, parentOf(provider))) {
    throw invalid('scope', `must be the uid of ${parentOf(provider)} or of a group below it`);
  }
  await requireAssignable(ctx, 'role_uid', mapping.roleUid, mapping.scope);
  if (!(await find(ctx.db.forShare, groups, mapping.scope))) {
    throw invalid('scope', `there is no group ${mapping.scope}`);
  }
}

function mappingProblems({ externalGroupId, roleUid }: ExternalGroupRoleMapping): FieldViolation[] {
  const found: FieldViolation[] = [];
  if (!EXTERNAL_GROUP.test(externalGroupId)) {
    found.push({
      field: 'external_group_id',
      description: 'must have 1 to 255 characters, none of them a control character',
    });
  }
  if (roleUid === '') found.push({ field: 'role_uid', description: 'is required' });
  return found;
}

const externalGroupKey = (provider: string, externalGroup: string): string => `${provider} ${externalGroup}`;

/** The roles that a token of `provider` gives when it names these external groups. */
export async function mappedRoles(
  db: Reader,
  provider: string,
  externalGroups: readonly string[],
): Promise<{ readonly group: Uid; readonly roleUid: string }[]> {
  const keys = [...new Set(externalGroups)].map((group) => externalGroupKey(provider, group));
  const found = await findReferringAny(db, externalGroupRoleMappings, 'external_group', keys);
  return found.map(({ message }) => ({ group: scopeOf(message), roleUid: message.roleUid }));
}

/** The scope of a stored mapping, which is always a uid: it was checked when it was stored. */
const scopeOf = ({ scope }: ExternalGroupRoleMapping): Uid => parseUid('scope', scope);

/** Refuses a caller that could not create all mappings of `provider`: applying them to other tokens grants roles. */
export async function requireMappingsAssignable(ctx: WriteContext, provider: string): Promise<void> {
  for (const { message } of await findChildren(ctx.db, externalGroupRoleMappings, provider)) {
    await requireAssignable(ctx, 'oidc', message.roleUid, scopeOf(message));
  }
}

/** Refuses a caller that does not hold all capabilities that the mappings of `provider` give. */
export async function requireMappingsRevocable(ctx: WriteContext, provider: string): Promise<void> {
  const checked = new Set<string>();
  for (const { message } of await findChildren(ctx.db, externalGroupRoleMappings, provider)) {
    const key = `${message.roleUid} ${message.scope}`;
    if (checked.has(key)) continue;
    checked.add(key);
    await requireRoleRevocable(ctx, message.roleUid, scopeOf(message));
  }
}

/** With the check of a single deletion. A provider checks all its mappings before they are deleted with it. */
const mappingsWithChecks: typeof externalGroupRoleMappings = {
  ...externalGroupRoleMappings,
  beforeDelete: (ctx, { message }) => requireRoleRevocable(ctx, message.roleUid, scopeOf(message)),
};

export const externalGroupRoleMappingOperations = (engine: Engine): Operations => ({
  ...standardOperations(engine, mappingsWithChecks, ExternalGroupRoleMappingsService),
  ...standardOperations(engine, mappingsWithChecks, ExternalGroupRoleMappingUpdatesService),
  ...batchDelete(engine.kinds),
});

const batchDelete = (kinds: ResourcesByKind): Operations =>
  writeOperation(ExternalGroupRoleMappingsService.method.batchDeleteExternalGroupRoleMappings, {
    async run(ctx, { parent, names }) {
      if (names.length > MAX_BATCH) throw invalid('names', `must name at most ${MAX_BATCH} mappings`);
      for (const [at, name] of names.entries()) {
        if (!isUid(name) || parentOf(name) !== parent) {
          throw invalid(`names[${at}]`, `must be the uid of a mapping of the identity provider ${parent}`);
        }
      }
      await requireParent(ctx.db.forShare, externalGroupRoleMappings, parent);
      const deleted: ExternalGroupRoleMapping[] = [];
      // Sorted, so that two concurrent batches lock the rows in the same order and cannot deadlock.
      for (const name of [...new Set(names)].sort()) {
        const stored = await deleteTree(ctx, kinds, mappingsWithChecks, name);
        if (stored) deleted.push(stored.message);
      }
      if (deleted.length === 0) ctx.unchanged();
      return create(BatchDeleteExternalGroupRoleMappingsResponseSchema, {
        parent,
        externalGroupRoleMappings: deleted,
      });
    },
    event: (_ctx, { parent }, message) => ({
      subject: parent,
      extensions: { group: rootOf(parent), identityprovider: parent },
      body: { schema: BatchDeleteExternalGroupRoleMappingsResponseSchema, message },
    }),
  });
