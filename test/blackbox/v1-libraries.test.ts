import assert from 'node:assert/strict';
import { test } from 'node:test';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { Code } from '../../src/base/errors.ts';
import { parentOf } from '../../src/base/uid.ts';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { ArtifactsService } from '../../src/contract/gen/chainguard/platform/libraries/v2/artifacts_pb.js';
import { Artifacts } from '../../src/contract/gen/platform/libraries/v1/artifacts.libraries.platform_pb.js';
import { AWSMarketplaceSubscriptions } from '../../src/contract/gen/platform/libraries/v1/aws_marketplace_subscriptions.libraries.platform_pb.js';
import {
  Ecosystem,
  Entitlements,
  Policy,
  Source,
} from '../../src/contract/gen/platform/libraries/v1/entitlements.libraries.platform_pb.js';
import { Malware, MalwareScope } from '../../src/contract/gen/platform/libraries/v1/malware.libraries.platform_pb.js';
import {
  NpmPackages,
  NpmSourceType,
} from '../../src/contract/gen/platform/libraries/v1/npm_packages.libraries.platform_pb.js';
import {
  LibraryPolicies,
  LibraryPolicyBindingMode,
  LibraryPolicyBindings,
  LibraryPolicyBlockEvents,
  LibraryPolicyType,
} from '../../src/contract/gen/platform/libraries/v1/policy_gates.libraries.platform_pb.js';
import { ResolutionCache } from '../../src/contract/gen/platform/libraries/v1/resolution_cache.libraries.platform_pb.js';
import { LibraryImportsService } from '../../src/contract/gen/wharfinger/imports/v1/libraries_pb.js';
import { LibraryPoliciesService } from '../../src/contract/gen/wharfinger/libraries/v1/library_policies_pb.js';
import { MalwareEntriesService } from '../../src/contract/gen/wharfinger/libraries/v1/malware_entries_pb.js';
import { type ApiFixture, onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { callerWithRole } from '../support/callers.ts';
import { eventsAbout } from '../support/inspect.ts';
import { toPlainObject } from '../support/read-pairs.ts';
import { rejects } from '../support/rejects.ts';

const { createPolicy, updatePolicy, listPolicies, deletePolicy } = LibraryPolicies.method;
const { createBinding, updateBinding, listBindings, deleteBinding } = LibraryPolicyBindings.method;
const { listBlockEvents } = LibraryPolicyBlockEvents.method;
const { listBlockList } = Malware.method;
const { importJavaLibraries, importJavascriptLibraries, importPythonLibraries } = LibraryImportsService.method;
const { createMalwareEntry, deleteMalwareEntry } = MalwareEntriesService.method;
const { JAVASCRIPT, PYTHON, JAVA, UNKNOWN } = Ecosystem;
const { ENFORCED, LOG } = LibraryPolicyBindingMode;

const DAY = 24 * 60 * 60 * 1000;
const LONG_AGO = Date.UTC(2020, 0, 1);

const version = (name: string, text: string, more: { license?: string; remediated?: boolean; at?: number } = {}) => {
  const { at = LONG_AGO, ...fields } = more;
  const file = { name: `${text}.tgz`, sizeBytes: 100n, createTime: timestampFromMs(at) };
  return { name, version: text, description: `about ${name}`, files: [file], ...fields };
};

async function bindNewPolicy({ api }: ApiFixture, parentId: string, policy: object, mode = ENFORCED, at = parentId) {
  const { id } = await api.call(createPolicy, { parentId, policy: { name: 'rules', ...policy } });
  const binding = { policy: id, ecosystem: JAVASCRIPT, mode };
  return { policyId: id, bindingId: (await api.call(createBinding, { parentId: at, binding })).id };
}

const blockEventsOf = async ({ api }: ApiFixture, parentId: string) =>
  (await api.call(listBlockEvents, { parentId })).items;

onEveryDatabaseAndWire('libraries that only v1 has', (fixture) => {
  const { newGroup } = fixture;

  test('a policy is created, read back, changed and deleted', async () => {
    const parentId = await newGroup();
    const sent = {
      name: 'No surprises, please',
      description: 'what production may use\nand what not',
      cooldownDays: 7,
      blockList: [{ purl: 'pkg:npm/left-pad@1.3.0' }, { purl: 'pkg:pypi/requests' }],
      allowList: [{ purl: 'pkg:npm/%40types/node', bypassCooldown: true, bypassMalware: false, justification: 'ours' }],
      blockedLicenses: ['GPL-3.0-only', 'SSPL-1.0'],
    };
    const created = await fixture.api.call(createPolicy, { parentId, policy: sent });
    assert.equal(parentOf(created.id), parentId);
    assert.equal(created.policyType, LibraryPolicyType.CUSTOM);
    const { id, policyType, expression, createdAt, updatedAt, ...fields } = toPlainObject(created) as typeof created;
    assert.deepEqual(fields, sent);
    assert.ok(id && policyType && expression === '' && createdAt && updatedAt);
    const { items, totalCount } = await fixture.api.call(listPolicies, { parentId, name: sent.name });
    assert.deepEqual(items, [created]);
    assert.equal(totalCount, 1n);
    assert.deepEqual(
      (await fixture.api.call(listPolicies, { parentId, policyType: LibraryPolicyType.SYSTEM })).items,
      [],
    );

    // A PUT without a field clears it.
    const changed = await fixture.api.call(updatePolicy, { id, name: 'Changed', blockedLicenses: ['MIT'] });
    assert.deepEqual([changed.name, changed.description, changed.cooldownDays], ['Changed', '', undefined]);
    assert.deepEqual([changed.blockList, changed.allowList, changed.blockedLicenses], [[], [], ['MIT']]);
    const own = await fixture.api.call(LibraryPoliciesService.method.getLibraryPolicy, { uid: id });
    assert.deepEqual([own.name, own.blockedLicenses], ['Changed', ['MIT']]);

    await fixture.api.call(deletePolicy, { id });
    assert.deepEqual((await fixture.api.call(listPolicies, { parentId })).items, []);
    await rejects(fixture.api.call(deletePolicy, { id }), Code.NOT_FOUND);
  });

  test('an invalid policy is refused, and the error names the field', async () => {
    const parentId = await newGroup();
    for (const [policy, field] of [
      [{ name: '' }, 'name'],
      [{ name: 'x'.repeat(129) }, 'name'],
      [{ description: 'x'.repeat(1025) }, 'description'],
      [{ blockedLicenses: Array.from({ length: 101 }, () => 'MIT') }, 'blocked_licenses'],
      [{ blockedLicenses: ['x'.repeat(129)] }, 'blocked_licenses'],
      [{ blockList: [{ purl: 'left-pad' }] }, 'block_list'],
      [{ allowList: [{ purl: '' }] }, 'allow_list'],
      [{ cooldownDays: -1 }, 'cooldown_days'],
    ] as const) {
      const call = fixture.api.call(createPolicy, { parentId, policy: { name: 'rules', ...policy } as object });
      assert.deepEqual((await rejects(call, Code.INVALID_ARGUMENT)).fields, [field]);
    }
    const longest = {
      name: 'n'.repeat(128),
      description: 'd'.repeat(1024),
      blockedLicenses: Array.from({ length: 100 }, (_, at) => String(at).padEnd(128, 'x')),
    };
    await fixture.api.call(createPolicy, { parentId, policy: longest });
  });

  test('a policy is bound at its group or below, and cannot be deleted while it is bound', async () => {
    const parentId = await newGroup();
    const below = await newGroup(parentId);
    const { policyId, bindingId } = await bindNewPolicy(fixture, parentId, {}, LOG, below);
    await rejects(fixture.api.call(deletePolicy, { id: policyId }), Code.FAILED_PRECONDITION);
    const binding = { policy: policyId, ecosystem: JAVASCRIPT, mode: ENFORCED };
    await rejects(fixture.api.call(createBinding, { parentId: below, binding }), Code.ALREADY_EXISTS);
    for (const [wrong, field] of [
      [{ policy: `${parentId}/${'0'.repeat(16)}` }, 'policy'],
      [{ policy: 'rules' }, 'policy'],
      [{ policy: '' }, 'policy'],
      [{ ecosystem: UNKNOWN }, 'ecosystem'],
      [{ mode: LibraryPolicyBindingMode.UNSPECIFIED }, 'mode'],
    ] as const) {
      const call = fixture.api.call(createBinding, { parentId: below, binding: { ...binding, ...wrong } });
      assert.deepEqual((await rejects(call, Code.INVALID_ARGUMENT)).fields, [field]);
    }
    const elsewhere = fixture.api.call(createBinding, { parentId: await newGroup(), binding });
    assert.deepEqual((await rejects(elsewhere, Code.INVALID_ARGUMENT)).fields, ['policy']);

    const changed = await fixture.api.call(updateBinding, { id: bindingId, ...binding, ecosystem: PYTHON });
    assert.deepEqual([changed.policy, changed.ecosystem, changed.mode], [policyId, PYTHON, ENFORCED]);
    const list = (filter: object) => fixture.api.call(listBindings, { parentId: below, ...filter });
    assert.deepEqual((await list({ ecosystem: PYTHON, mode: ENFORCED })).items, [changed]);
    assert.deepEqual((await list({ ecosystem: JAVASCRIPT })).items, []);
    assert.deepEqual((await list({ mode: LOG })).items, []);
    await fixture.api.call(deleteBinding, { id: bindingId });
    await fixture.api.call(deletePolicy, { id: policyId });
  });

  test('an enforced policy refuses imports into its group and below, and records them', async () => {
    const parentId = await newGroup();
    const below = await newGroup(parentId);
    const { policyId } = await bindNewPolicy(fixture, parentId, {
      cooldownDays: 30,
      blockList: [{ purl: 'pkg:npm/left-pad@1.3.0' }, { purl: 'pkg:npm/%40evil/all' }],
      allowList: [{ purl: 'pkg:npm/fresh-but-known', bypassCooldown: true, justification: 'we wrote it' }],
      blockedLicenses: ['gpl-3.0-only'],
    });
    const young = Date.now() - DAY;
    const versions = [
      version('left-pad', '1.3.0'),
      version('left-pad', '1.2.0'),
      version('@evil/all', '0.1.0'),
      version('copyleft', '1.0.0', { license: 'GPL-3.0-only' }),
      version('choice', '1.0.0', { license: 'MIT OR GPL-3.0-only' }),
      version('fresh', '1.0.0', { at: young }),
      version('fresh-but-known', '1.0.0', { at: young }),
    ];
    const outcome = await fixture.api.call(importJavascriptLibraries, { parent: below, versions });
    assert.equal(outcome.created, 3);
    assert.deepEqual(
      outcome.refusals.map(({ index, field, reason }) => [index, field, reason]),
      [
        [0, 'name', 'is on the block list of the library policy rules'],
        [2, 'name', 'is on the block list of the library policy rules'],
        [3, 'name', 'has the license GPL-3.0-only, which the library policy rules blocks'],
        [5, 'name', 'is younger than the 30 days of the library policy rules'],
      ],
    );
    const again = await fixture.api.call(importJavascriptLibraries, { parent: below, versions: versions.slice(0, 1) });
    assert.equal(again.refusals.length, 1);
    // The policy is bound to another ecosystem.
    const python = await fixture.api.call(importPythonLibraries, {
      parent: below,
      versions: [version('left-pad', '1.3.0')],
    });
    assert.equal(python.created, 1);

    const events = await blockEventsOf(fixture, below);
    assert.deepEqual(
      new Set(events.map(({ purl }) => purl)),
      new Set(['pkg:npm/left-pad@1.3.0', 'pkg:npm/%40evil/all@0.1.0', 'pkg:npm/copyleft@1.0.0', 'pkg:npm/fresh@1.0.0']),
    );
    const [latest] = events;
    assert.deepEqual([latest?.purl, latest?.attemptCount], ['pkg:npm/left-pad@1.3.0', 2]);
    assert.ok(
      timestampMs(latest?.lastBlockedAt ?? assert.fail()) >= timestampMs(latest?.firstBlockedAt ?? assert.fail()),
    );
    const fresh = events.find(({ purl }) => purl.includes('fresh')) ?? assert.fail();
    assert.deepEqual([fresh.policy, fresh.mode, fresh.ecosystem, fresh.cooldownDays], [policyId, ENFORCED, 'npm', 30]);
    assert.equal(timestampMs(fresh.publishDate ?? assert.fail()), young);
    assert.equal(timestampMs(fresh.unblocksAt ?? assert.fail()), young + 30 * DAY);

    const list = async (filter: object) =>
      (await fixture.api.call(listBlockEvents, { parentId: below, ...filter })).items.map(({ purl }) => purl);
    assert.deepEqual(await list({ packageName: 'fresh', ecosystem: JAVASCRIPT, mode: ENFORCED }), [fresh.purl]);
    assert.deepEqual(await list({ mode: LOG }), []);
    assert.deepEqual(await list({ since: timestampFromMs(Date.now() + DAY) }), []);
    assert.equal((await list({ since: timestampFromMs(LONG_AGO) })).length, 4);
  });

  test('a policy in log mode refuses nothing, and records what it would refuse', async () => {
    const parentId = await newGroup();
    await bindNewPolicy(fixture, parentId, { blockList: [{ purl: 'pkg:npm/left-pad' }] }, LOG);
    const outcome = await fixture.api.call(importJavascriptLibraries, {
      parent: parentId,
      versions: [version('left-pad', '1.3.0')],
    });
    assert.deepEqual([outcome.created, outcome.refusals], [1, []]);
    const [event] = await blockEventsOf(fixture, parentId);
    assert.deepEqual([event?.purl, event?.mode, event?.attemptCount], ['pkg:npm/left-pad@1.3.0', LOG, 1]);
  });

  test('a malware entry is listed, refuses imports, and marks versions that were imported before', async () => {
    const parentId = await newGroup();
    const below = await newGroup(parentId);
    const versions = [version('bad-package', '1.0.0'), version('bad-package', '1.0.1')];
    await fixture.api.call(importJavascriptLibraries, { parent: below, versions });
    const malwareEntry = {
      ...{ ecosystem: JAVASCRIPT, packageName: 'bad-package', version: '1.0.1', malwareId: 'MAL-2026-1' },
      ...{ source: `ossf ${parentId}`, reasons: ['steals tokens'], description: 'a copy of good-package' },
    };
    const { uid, createTime } = await fixture.api.call(createMalwareEntry, { parent: parentId, malwareEntry });
    const duplicate = fixture.api.call(createMalwareEntry, { parent: parentId, malwareEntry });
    await rejects(duplicate, Code.ALREADY_EXISTS);
    const wholePackage = { ecosystem: PYTHON, packageName: 'Worse_Package', source: malwareEntry.source };
    await fixture.api.call(createMalwareEntry, { parent: parentId, malwareEntry: wholePackage });

    const viewer = fixture.as(await (await callerWithRole(fixture.server, 'viewer', parentId)).token());
    const list = async (filter: object = {}) => await viewer.call(listBlockList, filter);
    const { items, totalCount } = await list();
    assert.equal(totalCount, 2n);
    assert.deepEqual(toPlainObject(items[1]), {
      ...{ packageName: 'bad-package', version: '1.0.1', scope: MalwareScope.VERSION, malid: 'MAL-2026-1' },
      ...{ source: malwareEntry.source, ecosystem: 'npm', reason: ['steals tokens'] },
      ...{ description: 'a copy of good-package', blockedAt: toPlainObject(createTime) },
    });
    const names = async (filter: object) => (await list(filter)).items.map(({ packageName }) => packageName);
    for (const ecosystem of ['npm', 'NPM', 'JavaScript']) assert.deepEqual(await names({ ecosystem }), ['bad-package']);
    assert.deepEqual(await names({ scope: MalwareScope.PACKAGE }), ['Worse_Package']);
    assert.deepEqual(await names({ packageName: 'bad-package' }), ['bad-package']);
    assert.deepEqual(await names({ packageSearch: 'package worse' }), ['Worse_Package']);
    assert.deepEqual(await names({ source: malwareEntry.source, pageSize: 1n }), ['Worse_Package']);
    const created = timestampMs(createTime ?? assert.fail());
    assert.equal((await names({ since: timestampFromMs(created) })).length, 2);
    assert.deepEqual(await names({ before: timestampFromMs(created) }), []);
    assert.equal((await names({ before: timestampFromMs(Date.now() + DAY) })).length, 2);
    assert.deepEqual(await names({ since: timestampFromMs(created + DAY) }), []);
    assert.deepEqual((await rejects(list({ ecosystem: 'cobol' }), Code.INVALID_ARGUMENT)).fields, ['ecosystem']);

    const refused = await fixture.api.call(importJavascriptLibraries, { parent: below, versions });
    assert.deepEqual(
      refused.refusals.map(({ index, reason }) => [index, reason]),
      [[1, 'is known to be malicious (MAL-2026-1): steals tokens']],
    );
    const python = [version('worse.package', '7', { at: LONG_AGO })];
    const refusedPython = await fixture.api.call(importPythonLibraries, { parent: below, versions: python });
    assert.deepEqual([refusedPython.created, refusedPython.refusals.length], [0, 1]);
    const { items: npm } = await viewer.call(NpmPackages.method.listVersions, { packageName: 'bad-package' });
    const marks = Object.fromEntries(npm.map((each) => [each.version, each.malwareMalicious]));
    assert.deepEqual(marks, { '1.0.0': false, '1.0.1': true });

    // A policy can exempt a version, and an entry can be withdrawn.
    const { bindingId } = await bindNewPolicy(fixture, parentId, {
      allowList: [{ purl: 'pkg:npm/bad-package@1.0.1', bypassMalware: true, justification: 'a false positive' }],
    });
    const importAgain = () => fixture.api.call(importJavascriptLibraries, { parent: below, versions });
    assert.deepEqual((await importAgain()).refusals, []);
    await fixture.api.call(deleteBinding, { id: bindingId });
    assert.equal((await importAgain()).refusals.length, 1);
    await fixture.api.call(deleteMalwareEntry, { uid });
    assert.deepEqual((await importAgain()).refusals, []);
  });

  test('v1 marks the malicious versions of a Java library', async () => {
    const parent = await newGroup();
    const name = 'org.example:logger';
    await fixture.api.call(importJavaLibraries, { parent, versions: [version(name, '1.0'), version(name, '1.1')] });
    const malwareEntry = { ecosystem: JAVA, packageName: name, version: '1.1' };
    await fixture.api.call(createMalwareEntry, { parent, malwareEntry });
    const viewer = fixture.as(await (await callerWithRole(fixture.server, 'viewer', parent)).token());
    const { items } = await viewer.call(Artifacts.method.list, {});
    const { items: versions } = await viewer.call(Artifacts.method.listVersions, { id: items[0]?.id ?? '' });
    const marks = versions.map((each) => [each.version, each.malwareScanned, each.malwareMalicious]).sort();
    assert.deepEqual(marks, [
      ['1.0', false, false],
      ['1.1', true, true],
    ]);
  });

  test('npm packages and their versions are listed in pages', async () => {
    const parent = await newGroup();
    const versions = [
      ...['1.0.0', '1.10.0', 'v1.9.0', '2.0.0-rc.1'].map((text, at) =>
        version('@acme/ui', text, { license: 'MIT', at: LONG_AGO + at * DAY }),
      ),
      version('left-pad', '1.3.0', { license: 'WTFPL', remediated: true }),
      version('zx', '8.0.0'),
    ];
    const outcome = await fixture.api.call(importJavascriptLibraries, { parent, versions });
    assert.deepEqual([outcome.created, outcome.refusals], [6, []]);
    const bad = [version('no spaces', '1.0.0'), version('@acme', '1.0.0')];
    const refused = await fixture.api.call(importJavascriptLibraries, { parent, versions: bad });
    assert.deepEqual(
      refused.refusals.map(({ field }) => field),
      ['name', 'name'],
    );

    const viewer = fixture.as(await (await callerWithRole(fixture.server, 'viewer', parent)).token());
    const list = async (filter: object) => await viewer.call(NpmPackages.method.list, filter);
    const first = await list({ pageSize: 2n });
    assert.equal(first.totalCount, 3n);
    const second = await list({ pageSize: 2n, pageToken: first.nextPageToken });
    assert.deepEqual(
      [...first.items, ...second.items].map(({ packageName }) => packageName),
      ['@acme/ui', 'left-pad', 'zx'],
    );
    assert.deepEqual(toPlainObject(first.items[0]), {
      ...{ packageName: '@acme/ui', latestVersion: '1.10.0', description: 'about @acme/ui', license: 'MIT' },
      ...{ versionCount: 4n, sourceType: NpmSourceType.INTERNAL },
    });
    assert.equal(second.nextPageToken, '');
    const names = async (filter: object) => (await list(filter)).items.map(({ packageName }) => packageName);
    assert.deepEqual(await names({ query: 'acme' }), ['@acme/ui']);
    assert.deepEqual(await names({ sourceTypes: [NpmSourceType.INTERNAL_REMEDIATED] }), ['left-pad']);
    assert.deepEqual(await names({ sourceTypes: [NpmSourceType.INTERNAL] }), ['@acme/ui', 'zx']);
    assert.deepEqual(await names({ sourceTypes: [NpmSourceType.UPSTREAM_REGISTRY] }), []);
    assert.deepEqual((await rejects(list({ pageSize: -1n }), Code.INVALID_ARGUMENT)).fields, ['page_size']);

    const packageName = '@acme/ui';
    const page = await viewer.call(NpmPackages.method.listVersions, { packageName, pageSize: 3n });
    const rest = await viewer.call(NpmPackages.method.listVersions, {
      ...{ packageName, pageSize: 3n, pageToken: page.nextPageToken },
    });
    assert.deepEqual(
      [...page.items, ...rest.items].map((each) => each.version),
      ['2.0.0-rc.1', '1.9.0', '1.10.0', '1.0.0'],
    );
    const { license, fileSize, fileCount, sourceType, malwareMalicious } = page.items[0] ?? assert.fail();
    assert.deepEqual(
      [license, fileSize, fileCount, sourceType, malwareMalicious],
      ['MIT', 100n, 1n, NpmSourceType.INTERNAL, false],
    );
    assert.equal(page.totalCount, 4n);
    // v2 does not define the ecosystem.
    const ecosystems = [1, 2];
    assert.deepEqual((await viewer.call(ArtifactsService.method.listArtifacts, { ecosystems })).artifacts, []);
  });

  test('an entitlement is created once per ecosystem, listed, used and deleted, with events', async () => {
    const parentId = await newGroup();
    const sent = {
      ecosystem: JAVASCRIPT,
      policy: Policy.CHAINGUARD_AND_UPSTREAM,
      source: Source.TRIAL,
      cooldownDays: 3,
    };
    const created = await fixture.api.call(Entitlements.method.create, { parentId, ...sent });
    const { id, ...fields } = toPlainObject(created) as typeof created;
    assert.deepEqual(fields, sent);
    await rejects(fixture.api.call(Entitlements.method.create, { parentId, ...sent }), Code.ALREADY_EXISTS);
    const missing = fixture.api.call(Entitlements.method.create, { parentId });
    assert.deepEqual((await rejects(missing, Code.INVALID_ARGUMENT)).fields, ['ecosystem']);
    const list = async (filter: object) =>
      (await fixture.api.call(Entitlements.method.list, { parentId, ...filter })).items;
    assert.deepEqual(await list({}), [created]);
    assert.deepEqual(await list({ ecosystems: [JAVASCRIPT, PYTHON] }), [created]);
    assert.deepEqual(await list({ ecosystems: [PYTHON] }), []);

    const versions = [version('fresh', '1.0.0', { at: Date.now() - DAY })];
    const outcome = await fixture.api.call(importJavascriptLibraries, { parent: parentId, versions });
    assert.equal(outcome.refusals[0]?.reason, 'is younger than the 3 days of the library entitlement');
    await fixture.api.call(Entitlements.method.delete, { id });
    assert.deepEqual(await list({}), []);
    const accepted = await fixture.api.call(importJavascriptLibraries, { parent: parentId, versions });
    assert.equal(accepted.created, 1);

    const events = await eventsAbout(fixture.db, id);
    assert.deepEqual(
      events.map(({ type, scope, bodyType }) => [type, scope, bodyType]),
      [
        ['created', 'Entitlement'],
        ['deleted', 'DeleteEntitlementRequest'],
      ].map(([change, message]) => [
        `dev.chainguard.api.libraries.entitlements.${change}.v1`,
        parentId,
        `chainguard.platform.libraries.${message}`,
      ]),
    );
  });

  test('the opt-out of the resolution cache is stored, and a zap says that nothing was cached', async () => {
    const parentId = await newGroup();
    const { setOptOut, status, zap, list } = ResolutionCache.method;
    assert.deepEqual((await fixture.api.call(status, { parentId })).watermarks, []);
    const optedOut = await fixture.api.call(setOptOut, { parentId, ecosystem: PYTHON, optedOut: true });
    assert.deepEqual(
      optedOut.watermarks.map((each) => [each.ecosystem, each.optedOut, each.generation]),
      [[PYTHON, true, 0n]],
    );
    const request = { parentId, ecosystem: JAVASCRIPT, idempotencyKey: 'once' };
    const dry = await fixture.api.call(zap, { ...request, dryRun: true });
    assert.deepEqual([dry.dryRun, dry.results[0]?.generation], [true, 1n]);
    assert.equal((await fixture.api.call(status, { parentId })).watermarks.length, 1);
    const zapped = await fixture.api.call(zap, request);
    assert.deepEqual(
      zapped.results.map((each) => [each.ecosystem, each.generation, each.retiredCount]),
      [[JAVASCRIPT, 1n, 0n]],
    );
    const replayed = await fixture.api.call(zap, request);
    assert.deepEqual([replayed.replayed, replayed.results], [true, zapped.results]);
    await fixture.api.call(zap, { parentId });
    const { watermarks } = await fixture.api.call(status, { parentId });
    assert.equal(watermarks.length, 10);
    const shown = Object.fromEntries(watermarks.map((each) => [each.ecosystem, each]));
    assert.deepEqual([shown[JAVASCRIPT]?.generation, shown[JAVASCRIPT]?.zapCount], [2n, 2n]);
    assert.deepEqual([shown[PYTHON]?.generation, shown[PYTHON]?.optedOut], [1n, true]);
    assert.ok(shown[PYTHON]?.lastZappedAt);

    const entries = await fixture.api.call(list, { parentId });
    assert.deepEqual([entries.items, entries.totalCount, entries.nextCursor], [[], 0n, '']);
    assert.deepEqual((await rejects(fixture.api.call(setOptOut, { parentId }), Code.INVALID_ARGUMENT)).fields, [
      'ecosystem',
    ]);
    await rejects(fixture.api.call(status, { parentId: `${parentId}/${'0'.repeat(16)}` }), Code.NOT_FOUND);

    const events = (await eventsAbout(fixture.db, parentId)).filter(({ type }) => type.includes('resolutioncache'));
    assert.deepEqual(
      events.map(({ type, scope }) => [type.replace('dev.chainguard.api.libraries.resolutioncache.', ''), scope]),
      ['optout.updated.v1', 'zapped.v1', 'zapped.v1'].map((type) => [type, parentId]),
    );
  });

  test('the marketplace is not available, and says so', async () => {
    const parentId = await newGroup();
    const id = `${parentId}/${'0'.repeat(16)}`;
    const { create, get, list, update, cancel } = AWSMarketplaceSubscriptions.method;
    for (const call of [
      () => fixture.api.call(create, { parentId, awsToken: 'token', ecosystems: [JAVA] }),
      () => fixture.api.call(get, { id }),
      () => fixture.api.call(update, { subscription: { id, ecosystems: [PYTHON] } }),
      () => fixture.api.call(cancel, { id }),
    ]) {
      const error = await rejects(call(), Code.FAILED_PRECONDITION);
      assert.match(error.message, /not connected to AWS Marketplace/);
      assert.equal(
        error.details.some((detail) => 'violations' in detail),
        true,
      );
    }
    assert.deepEqual((await rejects(fixture.api.call(create, { parentId }), Code.INVALID_ARGUMENT)).fields, [
      'aws_token',
    ]);
    assert.deepEqual((await fixture.api.call(list, { uidp: { childrenOf: parentId } })).items, []);
    const viewer = fixture.as(await (await callerWithRole(fixture.server, 'viewer', parentId)).token());
    await rejects(viewer.call(create, { parentId, awsToken: 'token' }), Code.PERMISSION_DENIED);
  });

  test('a caller of another group sees and changes nothing', async () => {
    const parentId = await newGroup();
    const { policyId, bindingId } = await bindNewPolicy(fixture, parentId, { blockList: [{ purl: 'pkg:npm/a' }] });
    await fixture.api.call(createMalwareEntry, {
      parent: parentId,
      malwareEntry: { ecosystem: JAVASCRIPT, packageName: 'b' },
    });
    await fixture.api.call(importJavascriptLibraries, {
      parent: parentId,
      versions: [version('a', '1'), version('c', '1')],
    });
    const elsewhere = await newGroup();
    const other = fixture.as(await (await callerWithRole(fixture.server, 'owner', elsewhere)).token());
    for (const method of [
      listPolicies,
      listBindings,
      listBlockEvents,
      listBlockList,
      NpmPackages.method.list,
    ] as const) {
      const { items } = (await other.call(method as never)) as { items: unknown[] };
      assert.deepEqual(items, [], String((method as { name: string }).name));
    }
    assert.deepEqual((await other.call(NpmPackages.method.listVersions, { packageName: 'c' })).items, []);
    await rejects(other.call(updatePolicy, { id: policyId, name: 'mine' }), Code.PERMISSION_DENIED);
    await rejects(other.call(deleteBinding, { id: bindingId }), Code.PERMISSION_DENIED);
    const imported = await other.call(importJavascriptLibraries, {
      parent: elsewhere,
      versions: [version('a', '1'), version('b', '1')],
    });
    assert.equal(imported.created, 2);
    // Malware entries and block events do not keep a group from being deleted; policies do.
    await rejects(fixture.api.call(GroupsService.method.deleteGroup, { uid: parentId }), Code.FAILED_PRECONDITION);
    await fixture.api.call(deleteBinding, { id: bindingId });
    await fixture.api.call(deletePolicy, { id: policyId });
    await fixture.api.call(GroupsService.method.deleteGroup, { uid: parentId });
  });
});
