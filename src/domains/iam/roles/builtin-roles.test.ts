import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { isUid, parentOf, ROOT } from '../../../base/uid.ts';
import {
  allCapabilities,
  type CapabilitySet,
  capabilitiesIn,
  capabilityByName,
  capabilityInfo,
  capabilitySetOf,
  capabilityUnion,
  covers,
  hasCapability,
  withoutCapabilities,
} from '../../../contract/capabilities.ts';
import { Capability } from '../../../contract/gen/capabilities/capabilities_pb.js';
import { files, methodTable } from '../../../contract/method-table.ts';
import { type BuiltinRole, builtinRole, builtinRoles, OPERATOR, OWNER } from './builtin-roles.ts';

const { roles: bundles }: { roles: Record<string, { role_name: string | null; capabilities: string[] }> } = JSON.parse(
  readFileSync(new URL('../../../../test/data/roles.json', import.meta.url), 'utf8'),
);

/** Roles of products that this server does not have. */
const otherProducts = ['actions.viewer', 'guardener.user', 'guardener.admin', 'argos.osv.reader'];

/** Capability bundles that roles.json lists without a role name. */
const unnamedBundles: Record<string, string> = {
  'apk.push': 'APKPushCaps',
  'libraries.java.push': 'LibrariesJavaPushCaps',
  'libraries.python.push': 'LibrariesPythonPushCaps',
  'libraries.javascript.push': 'LibrariesJavascriptPushCaps',
  'advisories.viewer': 'AdvisoriesViewerCaps',
  'advisories.creator': 'AdvisoriesCreatorCaps',
  'advisories.approver': 'AdvisoriesApproverCaps',
  'advisories.admin': 'AdvisoriesAdminCaps',
};

function role(name: string): BuiltinRole {
  const found = builtinRoles.find((candidate) => candidate.name === name);
  assert.ok(found, `there is no role ${name}`);
  return found;
}

const named = (...names: string[]) => capabilitySetOf(names.map((name) => capabilityByName(name) ?? assert.fail(name)));

/** Without the capabilities that only this server has. */
const published = (set: CapabilitySet): Capability[] =>
  capabilitiesIn(set).filter((capability) => !capabilityInfo(capability)?.grantedTo);

test('a capability of our own is granted to a role that exists', () => {
  for (const { name, grantedTo } of allCapabilities) {
    if (grantedTo !== undefined) assert.ok(['viewer', 'editor', 'owner', 'operator'].includes(grantedTo), name);
  }
});

test('the roles have exactly the capabilities of roles.json', () => {
  const expected = new Map(Object.entries(unnamedBundles).map(([name, key]) => [name, bundles[key]]));
  for (const bundle of Object.values(bundles)) if (bundle.role_name) expected.set(bundle.role_name, bundle);
  for (const name of otherProducts) assert.ok(expected.delete(name), name);
  for (const [name, bundle] of expected) {
    assert.deepEqual(
      published(role(name).capabilities).map((capability) => Capability[capability]),
      bundle?.capabilities,
      name,
    );
  }
  const added = [
    'limited_owner',
    'operator',
    ...['java', 'python', 'javascript'].map((e) => `libraries.${e}.pull_token_creator`),
  ];
  assert.deepEqual(builtinRoles.map(({ name }) => name).toSorted(), [...expected.keys(), ...added].toSorted());
});

test('a limited owner can change everything except access', () => {
  const owner = role('owner').capabilities;
  const limited = role('limited_owner').capabilities;
  assert.ok(covers(owner, limited));
  assert.ok(covers(limited, capabilityUnion(role('editor').capabilities, role('registry.push').capabilities)));
  const kinds = [
    'roles',
    'role_bindings',
    'group_invites',
    'identity',
    'identity_providers',
    'account_associations',
    'sessions',
  ];
  for (const { name } of capabilitiesIn(withoutCapabilities(owner, limited)).map(
    (capability) => capabilityInfo(capability) ?? assert.fail(),
  )) {
    assert.ok(name === 'groups.delete' || kinds.includes(name.split('.')[0] ?? ''), name);
  }
  for (const kind of kinds) {
    for (const verb of ['create', 'update', 'delete']) {
      const capability = capabilityByName(`${kind}.${verb}`);
      if (capability !== undefined) assert.ok(!hasCapability(limited, capability), `${kind}.${verb}`);
    }
  }
  assert.ok(!hasCapability(limited, Capability.CAP_IAM_SCIM_MANAGE));
});

test('a pull token creator can assign the pull role of the same ecosystem', () => {
  for (const ecosystem of ['java', 'python', 'javascript']) {
    const creator = role(`libraries.${ecosystem}.pull_token_creator`).capabilities;
    assert.ok(covers(creator, role(`libraries.${ecosystem}.pull`).capabilities));
    assert.ok(covers(creator, named('identity.create', 'role_bindings.create', 'roles.list', 'groups.list')));
  }
});

test('an operator can call every method', () => {
  for (const { id, capabilities } of methodTable(files))
    assert.ok(covers(OPERATOR.capabilities, capabilitySetOf(capabilities)), id);
  assert.ok(covers(OPERATOR.capabilities, OWNER.capabilities));
});

test('no other role has internal capabilities', () => {
  for (const { name, capabilities } of builtinRoles.filter((each) => each !== OPERATOR)) {
    assert.ok(!hasCapability(capabilities, Capability.CAP_INTERNAL), name);
    for (const capability of capabilitiesIn(capabilities)) assert.ok(!capabilityInfo(capability)?.internalOnly, name);
  }
});

test('uids are unique root uids, and the published one is unchanged', () => {
  for (const { uid, name } of builtinRoles) assert.ok(isUid(uid) && parentOf(uid) === ROOT, name);
  assert.equal(new Set(builtinRoles.map(({ uid }) => uid)).size, builtinRoles.length);
  for (const each of builtinRoles) assert.equal(builtinRole(each.uid), each);
  assert.equal(builtinRole('0'.repeat(40)), undefined);
  assert.equal(role('owner'), OWNER);
  assert.equal(role('viewer').uid, '63921b2c44617e3f2603851537be0123af4a57d7');
});

test('descriptions have one form', () => {
  assert.equal(role('viewer').description, 'Viewer Role (built-in)');
  assert.equal(role('registry.pull_token_creator').description, 'Registry Pull Token Creator Role (built-in)');
});
