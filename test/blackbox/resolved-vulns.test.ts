import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { timestampDate, timestampFromDate, timestampMs } from '@bufbuild/protobuf/wkt';
import { Code } from '../../src/base/errors.ts';
import { SecurityAdvisoryService } from '../../src/contract/gen/chainguard/platform/advisory/v2/advisory_pb.js';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { callerWithoutRole, callerWithRole } from '../support/callers.ts';
import { insertManifest, OCI_INDEX, withStore } from '../support/images.ts';
import { rejects } from '../support/rejects.ts';
import { newScannedRepo, type ScannedRepo } from '../support/scanned-repo.ts';
import { type SampleFinding, trivyReport } from '../support/scans.ts';

const { listResolvedVulnsReports } = SecurityAdvisoryService.method;

const at = (time: string) => timestampFromDate(new Date(time));

onEveryDatabaseAndWire('resolved vulnerabilities', (fixture) => {
  const cves = (...numbers: number[]): SampleFinding[] => numbers.map((n) => ({ id: `CVE-2026-${n}` }));
  let repo: ScannedRepo;

  /** Moves a tag through three images in five days. */
  before(async () => {
    repo = await newScannedRepo(fixture);
    const one = await repo.addImage('one', 'latest', '2026-08-01T08:00:00Z');
    const two = await repo.addImage('two', 'latest', '2026-08-03T08:00:00Z');
    const three = await repo.addImage('three', 'latest', '2026-08-05T08:00:00Z');
    await repo.importScan(one.digest, { findings: cves(1, 2, 3, 4), time: '2026-08-01T09:00:00Z' });
    await repo.importScan(two.digest, { findings: cves(2, 3, 9), time: '2026-08-03T09:00:00Z' });
    // 4 is found again, and 9 was found only in the second image.
    await repo.importScan(three.digest, { findings: cves(3, 4), time: '2026-08-05T09:00:00Z' });
  });

  const resolved = async (start: string, end: string, ref: { repo: string; tags?: string[] } = { repo: repo.uid }) => {
    const { resolvedVulnsReports } = await fixture.api.call(listResolvedVulnsReports, {
      imageRefs: [ref],
      startTime: at(start),
      endTime: at(end),
    });
    return resolvedVulnsReports.map(({ date, resolvedVulns }) => [
      date && timestampDate(date).toISOString().slice(0, 10),
      resolvedVulns.map(({ id }) => id).join(' '),
    ]);
  };

  test('vulnerabilities of the first image that the last one lacks are listed by day of removal', async () => {
    assert.deepEqual(await resolved('2026-08-02T00:00:00Z', '2026-08-06T00:00:00Z'), [
      ['2026-08-03', 'CVE-2026-1'],
      ['2026-08-05', 'CVE-2026-2'],
    ]);
    assert.deepEqual(await resolved('2026-08-02T00:00:00Z', '2026-08-04T00:00:00Z'), [
      ['2026-08-03', 'CVE-2026-1 CVE-2026-4'],
    ]);
    assert.deepEqual(await resolved('2026-08-03T12:00:00Z', '2026-08-05T12:00:00Z'), [
      ['2026-08-05', 'CVE-2026-2 CVE-2026-9'],
    ]);
    assert.deepEqual(await resolved('2026-08-03T12:00:00Z', '2026-08-04T12:00:00Z'), []);
    assert.deepEqual(
      await resolved('2026-07-01T00:00:00Z', '2026-08-06T00:00:00Z'),
      [],
      'there was no image at the start',
    );
  });

  test('a repo is given by uid, path or name, and tags by name or all', async () => {
    const period = ['2026-08-02T00:00:00Z', '2026-08-04T00:00:00Z'] as const;
    const { name: group } = await fixture.api.call(GroupsService.method.getGroup, { uid: repo.group });
    const expected = [['2026-08-03', 'CVE-2026-1 CVE-2026-4']];
    for (const name of [
      repo.uid,
      repo.name,
      `my-org/${group}/${repo.name}`,
      `localhost:8080/my-org/${group}/${repo.name}`,
    ]) {
      assert.deepEqual(await resolved(...period, { repo: name }), expected, name);
    }
    assert.deepEqual(await resolved(...period, { repo: repo.uid, tags: ['latest'] }), expected);
    assert.deepEqual(await resolved(...period, { repo: repo.uid, tags: ['other'] }), []);
    for (const name of ['no-such-repo', `${repo.group}/${'0'.repeat(16)}`]) {
      const error = await rejects(resolved(...period, { repo: name }), Code.NOT_FOUND);
      assert.equal(error.detail('ResourceInfo')?.resourceName, name);
    }
  });

  test('resolved vulnerabilities have aliases and CVSS scores', async () => {
    const ownRepo = await newScannedRepo(fixture);
    const [one, two] = [
      await ownRepo.addImage('one', 'v1', '2026-08-01T00:00:00Z'),
      await ownRepo.addImage('two', 'v1', '2026-08-02T00:00:00Z'),
    ];
    const found = [
      { id: 'GHSA-x', aliases: ['CVE-2026-7'] },
      { id: 'GHSA-y', aliases: ['CVE-2026-8'] },
    ];
    await ownRepo.importScan(one.digest, { findings: found, time: '2026-08-01T01:00:00Z' });
    // Still found, under its alias.
    await ownRepo.importScan(two.digest, { findings: cves(8), time: '2026-08-02T01:00:00Z' });
    const { resolvedVulnsReports } = await fixture.api.call(listResolvedVulnsReports, {
      imageRefs: [{ repo: ownRepo.uid, tags: ['v1'] }],
      startTime: at('2026-08-01T12:00:00Z'),
      endTime: at('2026-08-02T12:00:00Z'),
    });
    const [only, another] = resolvedVulnsReports.flatMap(({ resolvedVulns }) => resolvedVulns);
    assert.equal(another, undefined);
    assert.deepEqual([only?.id, only?.aliases], ['CVE-2026-7', ['GHSA-x']]);
    assert.match(only?.cvssSeverities[0]?.score ?? '', /^CVSS:3\.1/);
  });

  test('only reports of the same scanner are compared', async () => {
    const ownRepo = await newScannedRepo(fixture);
    const [one, two] = [
      await ownRepo.addImage('one', 'v1', '2026-08-01T00:00:00Z'),
      await ownRepo.addImage('two', 'v1', '2026-08-02T00:00:00Z'),
    ];
    await ownRepo.importScan(one.digest, { findings: cves(1), time: '2026-08-01T01:00:00Z' });
    await ownRepo.importScan(two.digest, { findings: [], time: '2026-08-02T01:00:00Z' }, trivyReport);
    const ref = { repo: ownRepo.uid };
    assert.deepEqual(await resolved('2026-08-01T12:00:00Z', '2026-08-02T12:00:00Z', ref), []);
    await ownRepo.importScan(two.digest, { findings: [], time: '2026-08-02T02:00:00Z' });
    assert.deepEqual(await resolved('2026-08-01T12:00:00Z', '2026-08-02T12:00:00Z', ref), [
      ['2026-08-02', 'CVE-2026-1'],
    ]);
  });

  test('an index has the reports of its images', async () => {
    const ownRepo = await newScannedRepo(fixture);
    for (const [n, content] of ['one', 'two'].entries()) {
      const image = await ownRepo.addImage(content);
      await ownRepo.importScan(image.digest, { findings: n === 0 ? cves(1) : [], time: `2026-08-0${n + 1}T01:00:00Z` });
      const now = Date.parse(`2026-08-0${n + 1}T00:00:00Z`);
      const index = { mediaType: OCI_INDEX, manifests: [{ ...image, contentSize: undefined }] };
      await withStore(fixture.server, (store) => insertManifest(store, ownRepo.uid, index, 'v1', { now }));
    }
    const found = await resolved('2026-08-01T12:00:00Z', '2026-08-02T12:00:00Z', { repo: ownRepo.uid });
    assert.deepEqual(found, [['2026-08-02', 'CVE-2026-1']]);
  });

  test('resolved vulnerabilities are paged, ordered and counted', async () => {
    const query = {
      imageRefs: [{ repo: repo.uid }],
      startTime: at('2026-08-02T00:00:00Z'),
      endTime: at('2026-08-06T00:00:00Z'),
      orderBy: 'date desc',
      pageSize: 1,
    };
    const first = await fixture.api.call(listResolvedVulnsReports, query);
    assert.deepEqual([first.totalCount, first.skipped, first.resolvedVulnsReports.length], [2n, 0, 1]);
    const rest = await fixture.api.call(listResolvedVulnsReports, { ...query, pageToken: first.nextPageToken });
    assert.equal(rest.nextPageToken, '');
    const ids = [first, rest].flatMap((page) => page.resolvedVulnsReports.flatMap((day) => day.resolvedVulns));
    assert.deepEqual(
      ids.map(({ id }) => id),
      ['CVE-2026-2', 'CVE-2026-1'],
    );
    for (const { uid, date, createTime, updateTime } of [first, rest].flatMap((page) => page.resolvedVulnsReports)) {
      const start = timestampMs(date ?? assert.fail());
      assert.equal(uid, new Date(start).toISOString().slice(0, 10));
      assert.deepEqual(createTime, date);
      const end = Math.min(start + 24 * 3_600_000 - 1, timestampMs(query.endTime));
      assert.equal(timestampMs(updateTime ?? assert.fail()), end);
    }
    const skipped = await fixture.api.call(listResolvedVulnsReports, { ...query, skip: 2 });
    assert.deepEqual([skipped.resolvedVulnsReports, skipped.skipped], [[], 2]);
    const other = { ...query, orderBy: 'date', pageToken: first.nextPageToken };
    await rejects(fixture.api.call(listResolvedVulnsReports, other), Code.INVALID_ARGUMENT);
  });

  test('validation errors name the invalid field', async () => {
    const good = {
      imageRefs: [{ repo: repo.uid }],
      startTime: at('2026-08-01T00:00:00Z'),
      endTime: at('2026-08-02T00:00:00Z'),
    };
    const cases: [object, string][] = [
      [{ imageRefs: [] }, 'image_refs'],
      [{ imageRefs: [{ tags: ['x'] }] }, 'image_refs[0].repo'],
      [{ imageRefs: [{ repo: repo.uid, tags: ['a b'] }] }, 'image_refs[0].tags[0]'],
      [{ endTime: at('2026-07-01T00:00:00Z') }, 'end_time'],
      [{ endTime: at('2028-07-01T00:00:00Z') }, 'end_time'],
      [{ orderBy: 'name' }, 'order_by'],
      [{ pageSize: -1 }, 'page_size'],
      [{ skip: -1 }, 'skip'],
    ];
    for (const [wrong, field] of cases) {
      await rejects(fixture.api.call(listResolvedVulnsReports, { ...good, ...wrong }), Code.INVALID_ARGUMENT, (error) =>
        assert.deepEqual(error.fields, [field]),
      );
    }
  });

  test('a repo that a caller cannot see is not found, and a caller that can see none is denied', async () => {
    const unprivileged = fixture.as(await (await callerWithoutRole(fixture.server, repo.group)).token());
    const elsewhere = fixture.as(
      await (await callerWithRole(fixture.server, 'owner', await fixture.newGroup())).token(),
    );
    for (const name of [repo.uid, repo.name]) {
      const request = {
        imageRefs: [{ repo: name }],
        startTime: at('2026-08-02T00:00:00Z'),
        endTime: at('2026-08-06T00:00:00Z'),
      };
      await rejects(unprivileged.call(listResolvedVulnsReports, request), Code.PERMISSION_DENIED);
      const error = await rejects(elsewhere.call(listResolvedVulnsReports, request), Code.NOT_FOUND);
      assert.equal(error.detail('ResourceInfo')?.resourceName, name);
    }
  });
});
