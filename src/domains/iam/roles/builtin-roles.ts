import type { Uid } from '../../../base/uid.ts';
import {
  allCapabilities,
  type CapabilitySet,
  capabilityByName,
  capabilitySetOf,
  capabilityUnion,
  withoutCapabilities,
} from '../../../contract/capabilities.ts';
import type { Capability } from '../../../contract/gen/capabilities/capabilities_pb.js';

/** A role that every server has. It has no parent, and clients can neither change nor delete it. */
export interface BuiltinRole {
  readonly uid: Uid;
  readonly name: string;
  readonly description: string;
  readonly capabilities: CapabilitySet;
}

const named = (name: string): Capability => {
  const capability = capabilityByName(name);
  if (capability === undefined) throw new Error(`a built-in role has the unknown capability ${name}`);
  return capability;
};

/** `on('repo', 'create', 'delete')` returns `repo.create` and `repo.delete`. */
const on = (resource: string, ...verbs: readonly string[]): CapabilitySet =>
  capabilitySetOf(verbs.map((verb) => named(`${resource}.${verb}`)));

const list = (...resources: readonly string[]): CapabilitySet =>
  capabilityUnion(...resources.map((resource) => on(resource, 'list')));

const registryPull = capabilityUnion(
  list('groups', 'record_signatures', 'sboms', 'vuln_reports'),
  list('repo', 'manifest', 'manifest.metadata', 'tag', 'referrers'),
  on('repo.blobs', 'get'),
);
const registryPush = capabilityUnion(
  registryPull,
  on('groups', 'create'),
  on('repo', 'create', 'update', 'delete'),
  on('manifest', 'create', 'update', 'delete'),
  on('tag', 'create', 'update', 'delete'),
);

const apkPull = capabilityUnion(list('groups', 'apk'), on('apk.blobs', 'get'));
const apkPush = capabilityUnion(apkPull, on('apk', 'create', 'delete'));

const libraryPull = (ecosystem: string) => list('libraries.entitlements', `libraries.${ecosystem}`);
const libraryPush = (ecosystem: string) =>
  capabilityUnion(libraryPull(ecosystem), on(`libraries.${ecosystem}`, 'create'));

/** For creating identities and assigning the pull role to them, which requires the capabilities of that role. */
const pullTokenCreator = (...pull: readonly CapabilitySet[]): CapabilitySet =>
  capabilityUnion(list('groups', 'roles'), on('role_bindings', 'create'), on('identity', 'create'), ...pull);

const guardenerUser = capabilityUnion(
  registryPull,
  list('terms', 'guardener.association'),
  on('guardener.dfc', 'convert'),
  on('guardener.actions', 'migrate'),
  on('guardener.scan', 'list', 'get'),
);
const guardenerAdmin = capabilityUnion(guardenerUser, on('terms', 'accept'), on('guardener.association', 'manage'));

const skillsPublish = capabilityUnion(
  list('terms', 'skills.entitlements'),
  on('skills', 'publish'),
  on('skills.harden', 'read', 'write', 'cancel'),
);

const advisoriesViewer = list('advisories');
const advisoriesCreator = capabilityUnion(advisoriesViewer, on('advisories', 'create', 'update'));
const advisoriesApprover = capabilityUnion(advisoriesCreator, on('advisories', 'approve'));
const advisoriesAdmin = capabilityUnion(advisoriesApprover, on('advisories', 'delete'));

/** Lists everything, and pulls no content. */
const consoleViewer = capabilityUnion(
  list('groups', 'group_invites', 'roles', 'role_bindings', 'identity', 'identity_providers', 'account_associations'),
  list('subscriptions', 'actions', 'advisories', 'record_signatures', 'sboms', 'vuln_reports', 'vuln_report'),
  list('repo', 'manifest', 'manifest.metadata', 'tag', 'referrers', 'apk', 'version', 'build_report'),
  list('registry.entitlements', 'registry.settings', 'registry.overlays', 'registry.deployments'),
  list('libraries.entitlements', 'libraries.artifacts', 'libraries.cache', 'libraries.request_groups'),
  list('libraries.aws_marketplace.subscriptions', 'libraries.remote_registries'),
  list('libraries.policy', 'libraries.policy.binding', 'libraries.policy.block_event'),
  list('policies.policy', 'policies.binding', 'policies.decision', 'policies.override'),
  list('packages.entitlements', 'guardener.entitlement', 'skills.entitlements', 'skills'),
  on('guardener.scan', 'list', 'get'),
);

/** Capabilities that the contract grants to a role itself (`granted_to`). */
function declaredFor(role: 'viewer' | 'editor' | 'owner' | 'operator'): CapabilitySet {
  const declared = allCapabilities.filter(({ grantedTo }) => grantedTo === role);
  return capabilitySetOf(declared.map(({ capability }) => capability));
}

const viewer = capabilityUnion(consoleViewer, registryPull, apkPull, guardenerUser, declaredFor('viewer'));

const editor = capabilityUnion(
  viewer,
  declaredFor('editor'),
  on('repo', 'create', 'update', 'delete'),
  on('registry.overlays', 'list', 'edit'),
  on('subscriptions', 'create', 'update', 'delete'),
  on('libraries.request_groups', 'create', 'update', 'delete', 'items.update'),
);

/** All changes of access. */
const accessControl = capabilityUnion(
  on('group_invites', 'create', 'delete'),
  on('roles', 'create', 'update', 'delete'),
  on('role_bindings', 'create', 'update', 'delete'),
  on('identity', 'create', 'update', 'delete'),
  on('identity_providers', 'create', 'update', 'delete', 'scim.manage'),
  on('account_associations', 'create', 'update', 'delete'),
  on('sessions', 'list', 'end'),
);

const owner = capabilityUnion(
  declaredFor('owner'),
  ...[editor, registryPush, apkPush, skillsPublish, guardenerAdmin, accessControl],
  ...['java', 'python', 'javascript', 'dotnet', 'go'].map(libraryPush),
  on('groups', 'update', 'delete'),
  on('vuln_report', 'create'),
  on('vuln', 'create'),
  on('repo', 'check_policies'),
  on('registry.entitlements.images', 'add', 'remove', 'swap'),
  on('libraries.entitlements', 'create', 'delete'),
  on('libraries.cache', 'invalidate'),
  on('libraries.aws_marketplace.subscriptions', 'create', 'update'),
  on('libraries.request_groups', 'submit'),
  on('libraries.remote_registries', 'create', 'delete'),
  on('libraries.policy', 'create', 'update', 'delete'),
  on('libraries.policy.binding', 'create', 'update', 'delete'),
  on('policies.policy', 'create', 'update', 'delete'),
  on('policies.binding', 'create', 'update', 'delete'),
  on('policies.override', 'create', 'delete'),
  on('skills.entitlements', 'create', 'delete'),
  on('mcp.tool', 'call'),
);

/**
 * The published contract names this role without its capabilities. Here it is an owner that can change everything
 * except access, and cannot delete groups. Identities count as access: changing whom an identity matches gives its role
 * bindings to another login, and deleting an identity revokes them.
 */
const limitedOwner = withoutCapabilities(owner, capabilityUnion(accessControl, on('groups', 'delete')));

/**
 * Can call every method that the server implements. The published contract has no such role: there, some methods are
 * closed to owners, such as writing the README of a repo, because the operator of the service is another party.
 */
const operator = capabilityUnion(
  owner,
  declaredFor('operator'),
  advisoriesAdmin,
  on('repo.internal', 'admin'),
  on('registry.deployments', 'create', 'update'),
  on('registry.entitlements', 'create', 'delete'),
  on('registry.settings', 'update'),
  // A role must have it in order to have other internal capabilities.
  capabilitySetOf([named('internal')]),
);

/** Returns `Registry Pull` for `registry.pull`. */
const titleOf = (name: string): string =>
  name
    .split(/[._]/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join(' ');

const role = (uid: string, name: string, capabilities: CapabilitySet): BuiltinRole => ({
  uid: uid as Uid,
  name,
  description: `${titleOf(name)} Role (built-in)`,
  capabilities,
});

// The uids must never change: role bindings in existing databases refer to them.

/** The founder of an organization gets it there. */
export const OWNER = role('2c334765280ed9898d2ab405a8e822e2d721ff82', 'owner', owner);

/** The first owner of a server gets it at the first organization. Only its holders can assign it. */
export const OPERATOR = role('06399b81ef7f1f1e014b2eb50aeb66ed6280724a', 'operator', operator);

export const builtinRoles: readonly BuiltinRole[] = [
  OWNER,
  role('69d1dd5045bf06485df483dd957290205c0d116f', 'limited_owner', limitedOwner),
  role('79431355794536f838fc3f092f17d680fb07c084', 'editor', editor),
  role('63921b2c44617e3f2603851537be0123af4a57d7', 'viewer', viewer),
  role('c2eb11ebfdd0de8b5b2150f3a5d17bf702f36da9', 'console_viewer', consoleViewer),
  role('ff6fbd6cb4afea1db33cbeed44d504dbd67d5649', 'registry.pull', registryPull),
  role('4b90485b07e6252917f1db3b63aa31645a6ace3e', 'registry.push', registryPush),
  role(
    '0e125f49bcd69240353907e4352f75b1c1c95d16',
    'registry.pull_token_creator',
    pullTokenCreator(registryPull, apkPull),
  ),
  role('20176378a145f3ecb2d361b4526dfad43301dbdb', 'apk.pull', apkPull),
  role('1ddc1c5617bea9c65a478385572860e30dbd3ca8', 'apk.push', apkPush),
  role('c53088f886521dca468130098f991e566811a80b', 'libraries.java.pull', libraryPull('java')),
  role('dbf8c6db28bd32a5dc2c13a82268ff43bf64f743', 'libraries.java.push', libraryPush('java')),
  role(
    'f3c9e91bd3fa322a00a950995c4d7e8873f6dcb6',
    'libraries.java.pull_token_creator',
    pullTokenCreator(libraryPull('java')),
  ),
  role('0e5ce1f9eeaa217915f7ceb6b7589f4a43d9f52c', 'libraries.python.pull', libraryPull('python')),
  role('488ee46175ff4660fd93f4fb1fc77ef5de6b3aa0', 'libraries.python.push', libraryPush('python')),
  role(
    'a4c59d02ff6e340af4139eb034743a65765284e7',
    'libraries.python.pull_token_creator',
    pullTokenCreator(libraryPull('python')),
  ),
  role('0c3620dba926fd7259b53de92c0f577bb860c384', 'libraries.javascript.pull', libraryPull('javascript')),
  role('7d8225b53056d849d3e90565920d2b6b28701c15', 'libraries.javascript.push', libraryPush('javascript')),
  role(
    '42c18133b6664038721012784963af5a3604fd1e',
    'libraries.javascript.pull_token_creator',
    pullTokenCreator(libraryPull('javascript')),
  ),
  role('dceaf372f86142d69c70c084ed02a5b29f9fdeab', 'advisories.viewer', advisoriesViewer),
  role('b4b6642f8fff33a1a8db6a4eaf983beca7046c08', 'advisories.creator', advisoriesCreator),
  role('68885663aaee805085ca892b482c0ef81349be1e', 'advisories.approver', advisoriesApprover),
  role('b4d073e221af2bd7fd6b68a2a68080cc0037ec8f', 'advisories.admin', advisoriesAdmin),
  OPERATOR,
];

const byUid = new Map<string, BuiltinRole>(builtinRoles.map((role) => [role.uid, role]));

export const builtinRole = (uid: string): BuiltinRole | undefined => byUid.get(uid);
