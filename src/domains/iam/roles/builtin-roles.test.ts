import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { isUid, parentOf, ROOT } from '../../../base/uid.ts';
import { capabilityNamed, covers, has, infoOf, listOf, setOf, union, without } from '../../../contract/capabilities.ts';
import { Capability } from '../../../contract/gen/capabilities/capabilities_pb.js';
import { files, methodTable } from '../../../contract/method-table.ts';
import { type BuiltinRole, builtinRole, builtinRoles, OPERATOR, OWNER } from './builtin-roles.ts';

const { roles: bundles }: { roles: Record<string, { role_name: string | null; capabilities: string[] }> } = JSON.parse(
  readFileSync(new URL('../../../../test/data/roles.json', import.meta.url), 'utf8'),
);

/** Roles of products that this server does not have. */
const otherProducts = ['actions.viewer', 'guardener.user', 'guardener.admin', 'argos.osv.reader'];

/** Roles whose bundle the facts have but do not pair with a name. */
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

const named = (...names: string[]) => setOf(names.map((name) => capabilityNamed(name) ?? assert.fail(name)));

test('the roles grant exactly what the facts say', () => {
  const expected = new Map(Object.entries(unnamedBundles).map(([name, key]) => [name, bundles[key]]));
  for (const bundle of Object.values(bundles)) if (bundle.role_name) expected.set(bundle.role_name, bundle);
  for (const name of otherProducts) assert.ok(expected.delete(name), name);
  for (const [name, bundle] of expected) {
    assert.deepEqual(
      listOf(role(name).capabilities).map((capability) => Capability[capability]),
      bundle?.capabilities,
      name,
    );
  }
  const ours = [
    'limited_owner',
    'operator',
    ...['java', 'python', 'javascript'].map((e) => `libraries.${e}.pull_token_creator`),
  ];
  assert.deepEqual(builtinRoles.map(({ name }) => name).toSorted(), [...expected.keys(), ...ours].toSorted());
});

test('a limited owner runs everything but access', () => {
  const owner = role('owner').capabilities;
  const limited = role('limited_owner').capabilities;
  assert.ok(covers(owner, limited));
  assert.ok(covers(limited, union(role('editor').capabilities, role('registry.push').capabilities)));
  const kinds = ['roles', 'role_bindings', 'group_invites', 'identity', 'identity_providers', 'account_associations'];
  for (const { name } of listOf(without(owner, limited)).map((capability) => infoOf(capability) ?? assert.fail())) {
    assert.ok(name === 'groups.delete' || kinds.includes(name.split('.')[0] ?? ''), name);
  }
  for (const kind of kinds) {
    for (const verb of ['create', 'update', 'delete']) {
      const capability = capabilityNamed(`${kind}.${verb}`);
      if (capability !== undefined) assert.ok(!has(limited, capability), `${kind}.${verb}`);
    }
  }
  assert.ok(!has(limited, Capability.CAP_IAM_SCIM_MANAGE));
});

test('a pull token creator can hand out the pull role of the same ecosystem', () => {
  for (const ecosystem of ['java', 'python', 'javascript']) {
    const creator = role(`libraries.${ecosystem}.pull_token_creator`).capabilities;
    assert.ok(covers(creator, role(`libraries.${ecosystem}.pull`).capabilities));
    assert.ok(covers(creator, named('identity.create', 'role_bindings.create', 'roles.list', 'groups.list')));
  }
});

test('an operator may call all that there is', () => {
  for (const { id, capabilities } of methodTable(files))
    assert.ok(covers(OPERATOR.capabilities, setOf(capabilities)), id);
  assert.ok(covers(OPERATOR.capabilities, OWNER.capabilities));
});

test('no other role grants what is internal', () => {
  for (const { name, capabilities } of builtinRoles.filter((each) => each !== OPERATOR)) {
    assert.ok(!has(capabilities, Capability.CAP_INTERNAL), name);
    for (const capability of listOf(capabilities)) assert.ok(!infoOf(capability)?.internalOnly, name);
  }
});

test('uids are roots, each used once, and the published one stays', () => {
  for (const { uid, name } of builtinRoles) assert.ok(isUid(uid) && parentOf(uid) === ROOT, name);
  assert.equal(new Set(builtinRoles.map(({ uid }) => uid)).size, builtinRoles.length);
  for (const each of builtinRoles) assert.equal(builtinRole(each.uid), each);
  assert.equal(builtinRole('0'.repeat(40)), undefined);
  assert.equal(role('owner'), OWNER);
  assert.equal(role('viewer').uid, '63921b2c44617e3f2603851537be0123af4a57d7');
});

test('descriptions follow one form', () => {
  assert.equal(role('viewer').description, 'Viewer Role (built-in)');
  assert.equal(role('registry.pull_token_creator').description, 'Registry Pull Token Creator Role (built-in)');
});
