import type { DescField } from '@bufbuild/protobuf';
import { isUid, isWithin, parentOf, ROOT } from '../base/uid.ts';
import { GroupInviteSchema } from '../contract/gen/chainguard/platform/iam/v2/group_invites_pb.js';
import { GroupSchema } from '../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitySchema } from '../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { IdentityProviderSchema } from '../contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import { RoleBindingSchema } from '../contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { RoleSchema, RolesService } from '../contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { ServerIdentitySchema } from '../contract/gen/wharfinger/iam/v1/server_identities_pb.js';
import { SessionSchema } from '../contract/gen/wharfinger/iam/v1/sessions_pb.js';
import { CliError, ExitCode, usageError } from './exit-codes.ts';
import type { CommandSpec, CompleteBody } from './resource/command-spec.ts';
import { listAll } from './resource/list-all.ts';
import { getField, setField } from './resource/request-body.ts';

/** The resources of `wharf iam`. */
export const resources: readonly CommandSpec[] = [
  {
    name: 'groups',
    resource: GroupSchema,
    columns: { UID: 'uid', NAME: 'name', DESCRIPTION: 'description', CREATED: 'createTime' },
    examples: { create: '--parent $ORG --name my-group' },
  },
  {
    name: 'identities',
    resource: IdentitySchema,
    columns: {
      UID: 'uid',
      NAME: 'name',
      ISSUER: ['claimMatch.issuer', 'claimMatch.issuerPattern', 'staticKeys.issuer'],
      SUBJECT: ['claimMatch.subject', 'claimMatch.subjectPattern', 'staticKeys.subject'],
      'LAST SEEN': 'lastSeenTime',
    },
    short: {
      issuer: ['claim_match.issuer', 'static_keys.issuer'],
      subject: ['claim_match.subject', 'static_keys.subject'],
      'subject-pattern': ['claim_match.subject_pattern'],
      audience: ['claim_match.audience', 'static_keys.audiences'],
      'issuer-keys': ['static_keys.issuer_keys'],
    },
    files: ['static_keys.issuer_keys'],
    examples: {
      create:
        '--parent $GROUP --name ci --issuer https://token.actions.githubusercontent.com --subject repo:org/repo:ref:refs/heads/main',
      update: '$ID --description "builds on main"',
    },
  },
  {
    name: 'roles',
    resource: RoleSchema,
    columns: { UID: 'uid', NAME: 'name', DESCRIPTION: 'description', CAPABILITIES: 'capabilities.length' },
    examples: { create: '--parent $GROUP --name auditor --capabilities groups.list,role_bindings.list' },
  },
  {
    name: 'role-bindings',
    resource: RoleBindingSchema,
    columns: {
      UID: 'uid',
      IDENTITY: ['identity.name', 'identity.uid'],
      ROLE: ['role.name', 'role.uid'],
      GROUP: ['group.name', 'group.uid'],
      CREATED: 'createTime',
    },
    short: { identity: ['identity_uid'], role: ['role_uid'] },
    complete: roleByName(RoleBindingSchema.field.roleUid),
    examples: {
      list: '--identity $IDENTITY',
      create: '--parent $GROUP --identity $IDENTITY --role viewer',
      update: '$ID --role editor',
    },
  },
  {
    name: 'identity-providers',
    resource: IdentityProviderSchema,
    columns: {
      UID: 'uid',
      NAME: 'name',
      ISSUER: 'oidc.issuer',
      'CLIENT ID': 'oidc.clientId',
      'DEFAULT ROLE': 'defaultRole',
    },
    files: ['oidc.client_secret'],
    complete: roleByName(IdentityProviderSchema.field.defaultRole),
    examples: {
      create:
        '--parent $ORG --name okta --default-role viewer --oidc.issuer https://example.okta.com --oidc.client-id wharf --oidc.client-secret @secret.txt',
    },
  },
  {
    name: 'invites',
    resource: GroupInviteSchema,
    columns: {
      UID: 'uid',
      ROLE: ['role.name', 'roleUid'],
      EMAIL: 'email',
      'SINGLE USE': 'singleUse',
      EXPIRES: 'expirationTime',
    },
    short: { role: ['role_uid'] },
    complete: roleByName(GroupInviteSchema.field.roleUid),
    examples: { create: '--parent $GROUP --role viewer --ttl 7d --single-use' },
  },
  {
    name: 'server-identities',
    resource: ServerIdentitySchema,
    columns: {
      UID: 'uid',
      NAME: 'name',
      EMAIL: 'email',
      ISSUER: 'issuer',
      DISABLED: 'disabled',
      'LAST SEEN': 'lastSeenTime',
    },
    examples: { list: '--in-root --order-by name' },
  },
  {
    name: 'sessions',
    resource: SessionSchema,
    columns: {
      UID: 'uid',
      CURRENT: 'current',
      CREATED: 'createTime',
      'LAST USED': 'lastUseTime',
      ADDRESS: 'address',
      CLIENT: 'userAgent',
    },
    examples: { list: '--identity $IDENTITY' },
  },
];

/** Replaces the name of a role by its uid, if exactly one role of that name can be bound in the group. */
function roleByName(field: DescField): CompleteBody {
  return async (body, { api, group }) => {
    const name = getField(body, [field]);
    if (typeof name !== 'string' || name === '' || isUid(name)) return;
    const { roles } = await listAll(api, {
      method: RolesService.method.listRoles,
      key: 'roles',
      fields: { name },
      limit: Number.POSITIVE_INFINITY,
    });
    const uids = (roles as { uid: string }[]).map(({ uid }) => uid).filter((uid) => canBindIn(group, uid));
    const [uid, ...others] = uids;
    const quoted = JSON.stringify(name);
    if (uid === undefined) throw new CliError(ExitCode.notFound, `no role named ${quoted} can be bound in this group`);
    if (others.length > 0)
      throw usageError(`${uids.length} roles are named ${quoted}: give the uid of one of them:`, uids);
    setField(body, [field], uid);
  };
}

/** A built-in role can be bound in every group, another role in its group and the descendants. */
function canBindIn(group: string, role: string): boolean {
  const parent = parentOf(role);
  return parent === ROOT || isWithin(group, parent);
}
