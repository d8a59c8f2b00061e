import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { Code } from '../../src/base/errors.ts';
import { SecurityAdvisoryService } from '../../src/contract/gen/chainguard/platform/advisory/v2/advisory_pb.js';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { stranger } from '../support/callers.ts';
import { everywhere } from '../support/every-database-and-wire.ts';
import { OCI_INDEX, push, withStore } from '../support/images.ts';
import { rejects } from '../support/rejects.ts';
import { newRepo, type ScannedRepo } from '../support/scanned-repo.ts';
import { type Found, trivyReport } from '../support/scans.ts';

const { listResolvedVulnsReports } = SecurityAdvisoryService.method;

const at = (time: string) => timestampFromDate(new Date(time));

everywhere('resolved vulnerabilities', (bench) => {
  const cves = (...numbers: number[]): Found[] => numbers.map((n) => ({ id: `CVE-2026-${n}` }));
  let repo: ScannedRepo;

  /** A tag that moves through three images in five days. */
  before(async () => {
    repo = await newRepo(bench);
    const one = await repo.image('one', 'latest', '2026-08-01T08:00:00Z');
    const two = await repo.image('two', 'latest', '2026-08-03T08:00:00Z');
    const three = await repo.image('three', 'latest', '2026-08-05T08:00:00Z');
    await repo.scan(one.digest, { found: cves(1, 2, 3, 4), time: '2026-08-01T09:00:00Z' });
    await repo.scan(two.digest, { found: cves(2, 3, 9), time: '2026-08-03T09:00:00Z' });
    // 4 came back, 9 came and went.
    await repo.scan(three.digest, { found: cves(3, 4), time: '2026-08-05T09:00:00Z' });
  });

  const resolved = async (start: string, end: string, ref: { repo: string; tags?: string[] } = { repo: repo.uid }) => {
    const { resolvedVulnsReports } = await bench.api.call(listResolvedVulnsReports, {
      imageRefs: [ref],
      startTime: at(start),
      endTime: at(end),
    });
    return resolvedVulnsReports.map(({ date, resolvedVulns }) => [
      date && timestampDate(date).toISOString().slice(0, 10),
      resolvedVulns.map(({ id }) => id).join(' '),
    ]);
  };

  test('are what the first image had and the last has no longer, on the day that they went', async () => {
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
    assert.deepEqual(await resolved('2026-07-01T00:00:00Z', '2026-08-06T00:00:00Z'), [], 'there was no image yet');
  });

  test('a repo goes by its uid, its path or its name; tags are asked for by name, or all', async () => {
    const period = ['2026-08-02T00:00:00Z', '2026-08-04T00:00:00Z'] as const;
    const { name: group } = await bench.api.call(GroupsService.method.getGroup, { uid: repo.group });
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
    assert.deepEqual(await resolved(...period, { repo: 'no-such-repo' }), []);
  });

  test('say other names and ratings too', async () => {
    const own = await newRepo(bench);
    const [one, two] = [
      await own.image('one', 'v1', '2026-08-01T00:00:00Z'),
      await own.image('two', 'v1', '2026-08-02T00:00:00Z'),
    ];
    const found = [
      { id: 'GHSA-x', aliases: ['CVE-2026-7'] },
      { id: 'GHSA-y', aliases: ['CVE-2026-8'] },
    ];
    await own.scan(one.digest, { found, time: '2026-08-01T01:00:00Z' });
    // Still there, by its other name.
    await own.scan(two.digest, { found: cves(8), time: '2026-08-02T01:00:00Z' });
    const { resolvedVulnsReports } = await bench.api.call(listResolvedVulnsReports, {
      imageRefs: [{ repo: own.uid, tags: ['v1'] }],
      startTime: at('2026-08-01T12:00:00Z'),
      endTime: at('2026-08-02T12:00:00Z'),
    });
    const [only, another] = resolvedVulnsReports.flatMap(({ resolvedVulns }) => resolvedVulns);
    assert.equal(another, undefined);
    assert.deepEqual([only?.id, only?.aliases], ['CVE-2026-7', ['GHSA-x']]);
    assert.match(only?.cvssSeverities[0]?.score ?? '', /^CVSS:3\.1/);
  });

  test('a scanner that has not seen both images says nothing about a difference', async () => {
    const own = await newRepo(bench);
    const [one, two] = [
      await own.image('one', 'v1', '2026-08-01T00:00:00Z'),
      await own.image('two', 'v1', '2026-08-02T00:00:00Z'),
    ];
    await own.scan(one.digest, { found: cves(1), time: '2026-08-01T01:00:00Z' });
    await own.scan(two.digest, { found: [], time: '2026-08-02T01:00:00Z' }, trivyReport);
    const ref = { repo: own.uid };
    assert.deepEqual(await resolved('2026-08-01T12:00:00Z', '2026-08-02T12:00:00Z', ref), []);
    await own.scan(two.digest, { found: [], time: '2026-08-02T02:00:00Z' });
    assert.deepEqual(await resolved('2026-08-01T12:00:00Z', '2026-08-02T12:00:00Z', ref), [
      ['2026-08-02', 'CVE-2026-1'],
    ]);
  });

  test('an index has the reports of its images', async () => {
    const own = await newRepo(bench);
    for (const [n, content] of ['one', 'two'].entries()) {
      const image = await own.image(content);
      await own.scan(image.digest, { found: n === 0 ? cves(1) : [], time: `2026-08-0${n + 1}T01:00:00Z` });
      const now = Date.parse(`2026-08-0${n + 1}T00:00:00Z`);
      const index = { mediaType: OCI_INDEX, manifests: [{ ...image, contentSize: undefined }] };
      await withStore(bench.server, (store) => push(store, own.uid, index, 'v1', { now }));
    }
    const found = await resolved('2026-08-01T12:00:00Z', '2026-08-02T12:00:00Z', { repo: own.uid });
    assert.deepEqual(found, [['2026-08-02', 'CVE-2026-1']]);
  });

  test('are paged, ordered and counted', async () => {
    const query = {
      imageRefs: [{ repo: repo.uid }],
      startTime: at('2026-08-02T00:00:00Z'),
      endTime: at('2026-08-06T00:00:00Z'),
      orderBy: 'date desc',
      pageSize: 1,
    };
    const first = await bench.api.call(listResolvedVulnsReports, query);
    assert.deepEqual([first.totalCount, first.skipped, first.resolvedVulnsReports.length], [2n, 0, 1]);
    const rest = await bench.api.call(listResolvedVulnsReports, { ...query, pageToken: first.nextPageToken });
    assert.equal(rest.nextPageToken, '');
    const ids = [first, rest].flatMap((page) => page.resolvedVulnsReports.flatMap((day) => day.resolvedVulns));
    assert.deepEqual(
      ids.map(({ id }) => id),
      ['CVE-2026-2', 'CVE-2026-1'],
    );
    const skipped = await bench.api.call(listResolvedVulnsReports, { ...query, skip: 2 });
    assert.deepEqual([skipped.resolvedVulnsReports, skipped.skipped], [[], 2]);
    const other = { ...query, orderBy: 'date', pageToken: first.nextPageToken };
    await rejects(bench.api.call(listResolvedVulnsReports, other), Code.INVALID_ARGUMENT);
  });

  test('what makes no sense is refused by name', async () => {
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
      await rejects(bench.api.call(listResolvedVulnsReports, { ...good, ...wrong }), Code.INVALID_ARGUMENT, (error) =>
        assert.deepEqual(error.fields, [field]),
      );
    }
  });

  test('whoever may not see the repo sees nothing', async () => {
    const nobody = bench.as(await (await stranger(bench.server, repo.group)).token());
    const { resolvedVulnsReports } = await nobody.call(listResolvedVulnsReports, {
      imageRefs: [{ repo: repo.uid }, { repo: repo.name }],
      startTime: at('2026-08-02T00:00:00Z'),
      endTime: at('2026-08-06T00:00:00Z'),
    });
    assert.deepEqual(resolvedVulnsReports, []);
  });
});
