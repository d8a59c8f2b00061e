import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { Code } from '../../src/base/errors.ts';
import { SecurityAdvisoryService } from '../../src/contract/gen/chainguard/platform/advisory/v2/advisory_pb.js';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { AdvisoriesService } from '../../src/contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { AdvisoryImportsService } from '../../src/contract/gen/wharfinger/imports/v1/advisories_pb.js';
import type { Outcome } from '../../src/contract/gen/wharfinger/imports/v1/outcome_pb.js';
import { VulnerabilityImportsService } from '../../src/contract/gen/wharfinger/imports/v1/vulnerabilities_pb.js';
import { newAdvisoryId } from '../../src/domains/advisories/advisory-id.ts';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { callerWithRole } from '../support/callers.ts';
import { rejects } from '../support/rejects.ts';

const { importAdvisories } = AdvisoryImportsService.method;
const { importVulnerabilities } = VulnerabilityImportsService.method;
const { listAdvisories } = AdvisoriesService.method;
const { listVulnerabilityMetadata } = SecurityAdvisoryService.method;

const counts = ({ created, updated, unchanged, refusals }: Outcome) => [created, updated, unchanged, refusals.length];

onEveryDatabaseAndWire('imports', (fixture) => {
  let parent: string;
  before(async () => {
    parent = await fixture.newGroup();
  });

  test('an invalid advisory is refused without the others, and a second import changes nothing', async () => {
    const fixed = { case: 'fixed' as const, value: { fixedVersion: '1' } };
    const good = { advisoryId: newAdvisoryId(), artifactName: 'zlib', events: [{ type: fixed }] };
    const bad = { advisoryId: newAdvisoryId(), artifactName: 'zlib', events: [{ type: fixed }, { author: 'ann' }] };
    const advisories = [good, bad, { artifactName: 'curl', aliases: ['CVE-1-1'] }];
    const outcome = await fixture.api.call(importAdvisories, { parent, advisories });
    assert.deepEqual(counts(outcome), [2, 0, 0, 1]);
    const { $typeName: _, ...refusal } = outcome.refusals[0] ?? assert.fail();
    const reason = 'must have a type';
    assert.deepEqual(refusal, { index: 1, id: bad.advisoryId, field: 'events[1]', reason });
    const read = () => fixture.api.call(listAdvisories, { uidp: { childrenOf: parent } });
    const first = await read();
    assert.deepEqual(counts(await fixture.api.call(importAdvisories, { parent, advisories })), [0, 0, 2, 1]);
    assert.deepEqual(await read(), first);

    const edited = [{ ...good, aliases: ['CVE-1-2'] }, ...advisories.slice(1)];
    assert.deepEqual(counts(await fixture.api.call(importAdvisories, { parent, advisories: edited })), [0, 1, 1, 1]);
    const changed = (await read()).advisories.find(({ advisoryId }) => advisoryId === good.advisoryId);
    assert.deepEqual(changed?.aliases, ['CVE-1-2']);
    assert.equal(changed?.events[0]?.uid, first.advisories.find(({ uid }) => uid === changed?.uid)?.events[0]?.uid);
  });

  test('an imported vulnerability replaces the former record', async () => {
    const id = `CVE-${parent.slice(-16)}`;
    const vulnerability = { id, summary: 'Bad', references: [{ type: 1, url: 'https://example.test' }] };
    const vulnerabilities = [
      vulnerability,
      { id: 'two words' },
      { id: '' },
      { id: 'X', severities: [{ type: 1, score: 'a\nb' }] },
    ];
    const outcome = await fixture.api.call(importVulnerabilities, { parent, vulnerabilities });
    assert.deepEqual(counts(outcome), [1, 0, 0, 3]);
    assert.deepEqual(
      outcome.refusals.map(({ index, field }) => [index, field]),
      [
        [1, 'id'],
        [2, 'id'],
        [3, 'severities[0].score'],
      ],
    );
    const send = (record: object) => fixture.api.call(importVulnerabilities, { parent, vulnerabilities: [record] });
    assert.deepEqual(counts(await send(vulnerability)), [0, 0, 1, 0]);
    assert.deepEqual(counts(await send({ id: id.toLowerCase(), details: 'Worse' })), [0, 1, 0, 0]);
    const { vulnerabilityMetadata } = await fixture.api.call(listVulnerabilityMetadata, { id });
    const [record = assert.fail()] = vulnerabilityMetadata;
    const { uid, createTime, updateTime, $typeName: _, ...replaced } = record;
    assert.ok(uid.startsWith(`${parent}/`) && createTime && updateTime);
    const empty = { summary: '', references: [], severities: [], aliases: [] };
    assert.deepEqual(replaced, { ...empty, id: id.toLowerCase(), details: 'Worse' });
    const elsewhere = { parent: await fixture.newGroup(), vulnerabilities: [vulnerability] };
    assert.match(
      (await fixture.api.call(importVulnerabilities, elsewhere)).refusals[0]?.reason ?? '',
      /another group of this organization/,
    );
  });

  test('deleting a group deletes its vulnerability metadata', async () => {
    const uid = await fixture.newGroup(parent);
    const id = `CVE-${uid.slice(-16)}`;
    const vulnerabilities = [{ id }, { id: `${id}-2` }];
    await fixture.api.call(importVulnerabilities, { parent: uid, vulnerabilities });
    await fixture.api.call(GroupsService.method.deleteGroup, { uid });
    assert.equal((await fixture.api.call(listVulnerabilityMetadata, { id })).totalCount, 0n);
    assert.equal((await fixture.api.call(importVulnerabilities, { parent, vulnerabilities })).created, 2);
  });

  test('imports without capability, into a missing group, or with too many records are refused', async () => {
    const { api, as, server } = fixture;
    const viewer = as(await (await callerWithRole(server, 'viewer', parent)).token());
    const missingGroup = `${parent}/${'0'.repeat(16)}`;
    const many = Array.from({ length: 1001 }, (_, i) => ({ id: `CVE-1-${i}`, artifactName: 'zlib' }));
    for (const [method, field] of [
      [importAdvisories, 'advisories'],
      [importVulnerabilities, 'vulnerabilities'],
    ] as const) {
      const send = (client: typeof api, at: string, records: object[]) =>
        client.call(method, { parent: at, [field]: records } as never);
      assert.match(
        (await rejects(send(viewer, parent, []), Code.PERMISSION_DENIED)).message,
        /advisories\.create, advisories\.update/,
      );
      await rejects(send(api, missingGroup, []), Code.NOT_FOUND);
      assert.deepEqual(counts(await send(api, parent, [])), [0, 0, 0, 0]);
      const records =
        method === importAdvisories
          ? many.map(({ artifactName }) => ({ artifactName }))
          : many.map(({ id }) => ({ id }));
      assert.deepEqual((await rejects(send(api, parent, records), Code.INVALID_ARGUMENT)).fields, [field]);
    }
  });
});
