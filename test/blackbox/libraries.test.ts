import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Code } from '../../src/base/errors.ts';
import { suffixOf } from '../../src/base/uid.ts';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import {
  type Artifact,
  ArtifactsService,
  Ecosystem,
  type ListArtifactsRequestSchema,
} from '../../src/contract/gen/chainguard/platform/libraries/v2/artifacts_pb.js';
import { Artifacts as V1Artifacts } from '../../src/contract/gen/platform/libraries/v1/artifacts.libraries.platform_pb.js';
import {
  LibraryImportsService,
  type LibraryVersion,
  type LibraryVersionSchema,
} from '../../src/contract/gen/wharfinger/imports/v1/libraries_pb.js';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { callerWithoutRole, callerWithRole } from '../support/callers.ts';
import { rejects } from '../support/rejects.ts';
import type { Client } from '../support/wires.ts';

const { listArtifacts, listArtifactVersions, getArtifactCount } = ArtifactsService.method;
const { importJavaLibraries, importPythonLibraries } = LibraryImportsService.method;
const { deleteGroup } = GroupsService.method;
const { JAVA, PYTHON } = Ecosystem;

type VersionInit = Exclude<MessageInitShape<typeof LibraryVersionSchema>, LibraryVersion>;
type ListRequest = Omit<
  Exclude<MessageInitShape<typeof ListArtifactsRequestSchema>, { $typeName: string }>,
  '$typeName'
>;

const DAY = 24 * 60 * 60 * 1000;
const START = Date.UTC(2020, 0, 1);

/** A version with one file, created the given number of days after START. */
const version = (name: string, text: string, day: number, more: VersionInit = {}): VersionInit => ({
  name,
  version: text,
  description: `${name} ${text}`,
  files: [
    { name: `${name.replace(':', '-')}-${text}`, sizeBytes: 100n, createTime: timestampFromMs(START + day * DAY) },
  ],
  ...more,
});

const PYTHONS = [
  version('Django', '4.2', 1),
  version('Django', '5.0rc1', 3),
  version('Django', '4.10', 2),
  version('zope.interface', '6.0', 1),
  version('torch', '2.1.0+cu121', 5),
  version('torch', '2.1.0', 4),
  version('asgiref', '3.7', 1, { remediated: true }),
];
const JAVAS = [
  version('org.slf4j:slf4j-api', '2.0.9', 1),
  version('org.slf4j:slf4j-api', '2.0.10', 2),
  version('org.apache.commons:commons-lang3', '3.14.0', 1),
];

onEveryDatabaseAndWire('libraries', (fixture) => {
  let group: string;
  /** A caller that sees only this group, because both wires share the organization. */
  let viewer: Client;
  before(async () => {
    group = await fixture.newGroup();
    viewer = fixture.as(await (await callerWithRole(fixture.server, 'viewer', group)).token());
    await fixture.api.call(importPythonLibraries, { parent: group, versions: PYTHONS });
    await fixture.api.call(importJavaLibraries, { parent: group, versions: JAVAS });
  });

  const list = (request: ListRequest) => viewer.call(listArtifacts, request);
  const namesOf = (artifacts: readonly Artifact[]): string[] => artifacts.map(({ name }) => name);
  const find = async (name: string, ecosystem: Ecosystem = PYTHON): Promise<Artifact> => {
    const { artifacts } = await list({ ecosystems: [ecosystem], query: name });
    return artifacts.find((one) => one.name === name) ?? assert.fail(`there is no ${name}`);
  };

  test('the fields of an artifact are derived from its versions', async () => {
    const django = await find('Django');
    assert.match(django.uid, new RegExp(`^${group}/[0-9a-f]{16}$`));
    assert.equal(django.ecosystem, PYTHON);
    assert.equal(django.latestVersion, '4.10', 'the newest release by the version rules of Python');
    assert.equal(django.description, 'Django 4.10');
    assert.equal(django.versionCount, 3);
    assert.ok(django.createTime && django.updateTime);
    const slf4j = await find('org.slf4j:slf4j-api', JAVA);
    assert.deepEqual([slf4j.latestVersion, slf4j.versionCount], ['2.0.10', 2]);
  });

  if (fixture.wire === 'REST') {
    test('the uid in the path of versions can have its slashes as they are', async () => {
      const { uid } = await find('Django');
      const get = async (path: string) => {
        const headers = { authorization: `Bearer ${fixture.server.token}` };
        const response = await fetch(`${fixture.server.url}${path}/versions`, { headers });
        return [response.status, await response.json()];
      };
      const encoded = await get(`/libraries/v2/artifacts/${encodeURIComponent(uid)}`);
      assert.equal(encoded[0], 200);
      assert.deepEqual(await get(`/libraries/v2/artifacts/${uid}`), encoded);
      assert.deepEqual(await get(`/libraries/v2beta1/artifacts/${uid}`), encoded);
      assert.equal((await get(`/libraries/v1/artifacts/${uid}`))[0], 200);
      for (const path of ['a/b', `${uid}/x`, uid.toUpperCase()]) {
        assert.equal((await get(`/libraries/v2/artifacts/${path}`))[0], 404, path);
      }
    });
  }

  test('artifacts are listed by ecosystem in case-insensitive order of names, and counted', async () => {
    const python = await list({ ecosystems: [PYTHON] });
    assert.deepEqual(namesOf(python.artifacts), ['asgiref', 'Django', 'torch', 'zope.interface']);
    assert.equal(python.totalCount, 4n);
    const both = await list({ ecosystems: [JAVA, PYTHON], orderBy: 'name desc', pageSize: 4, skip: 1 });
    assert.deepEqual(namesOf(both.artifacts), [
      'torch',
      'org.slf4j:slf4j-api',
      'org.apache.commons:commons-lang3',
      'Django',
    ]);
    assert.deepEqual([both.totalCount, both.skipped], [6n, 1]);
    const { pageToken, ...rest } = { ecosystems: [JAVA, PYTHON], orderBy: 'name desc', pageToken: both.nextPageToken };
    assert.deepEqual(namesOf((await list({ ...rest, pageToken })).artifacts), ['asgiref']);
    for (const orderBy of ['create_time', 'update_time desc', 'uid desc']) {
      const seen: string[] = [];
      let pageToken = '';
      do {
        const page = await list({ ecosystems: [JAVA, PYTHON], orderBy, pageSize: 4, pageToken });
        seen.push(...namesOf(page.artifacts));
        pageToken = page.nextPageToken;
      } while (pageToken !== '');
      assert.equal(new Set(seen).size, 6, orderBy);
    }
    const { counts } = await viewer.call(getArtifactCount, { ecosystems: [PYTHON, JAVA, PYTHON] });
    assert.deepEqual(
      counts.map(({ ecosystem, totalCount }) => [ecosystem, totalCount]),
      [
        [PYTHON, 4n],
        [JAVA, 2n],
      ],
    );
  });

  test('artifacts are searched by words, parts of names, CUDA version and remediation', async () => {
    const finds = async (request: ListRequest, ...names: string[]) => {
      const { artifacts, totalCount } = await list({ ecosystems: [JAVA, PYTHON], ...request });
      assert.deepEqual(namesOf(artifacts), names, JSON.stringify(request));
      assert.equal(totalCount, BigInt(names.length));
    };
    await finds({ query: 'DJANGO' }, 'Django');
    await finds({ query: 'zope' }, 'zope.interface');
    await finds({ query: 'zope-interface' }, 'zope.interface');
    await finds({ query: 'slf4j api' }, 'org.slf4j:slf4j-api');
    await finds({ query: 'org' }, 'org.apache.commons:commons-lang3', 'org.slf4j:slf4j-api');
    await finds({ query: 'commons-lang3' }, 'org.apache.commons:commons-lang3');
    await finds({ query: 'org.slf4j' }, 'org.slf4j:slf4j-api');
    await finds({ query: 'org', ecosystems: [PYTHON] });
    await finds({ query: 'djan' });
    await finds({ cudaVersion: '12.1' }, 'torch');
    await finds({ cudaVersion: 'cu121' }, 'torch');
    await finds({ cudaVersion: '11.8' });
    await finds({ remediated: true }, 'asgiref');
    await finds({ remediated: true, query: 'django' });
  });

  test('versions are listed newest first, with the time and size of their files', async () => {
    const django = await find('Django');
    const ordered = async (orderBy: string) => {
      const { artifactVersions } = await viewer.call(listArtifactVersions, {
        artifactId: django.uid,
        orderBy,
      });
      return artifactVersions.map((one) => one.version);
    };
    assert.deepEqual(await ordered(''), ['5.0rc1', '4.10', '4.2']);
    assert.deepEqual(await ordered('create_time'), ['4.2', '4.10', '5.0rc1']);
    const { artifactVersions, totalCount, nextPageToken } = await viewer.call(listArtifactVersions, {
      artifactId: suffixOf(django.uid),
      pageSize: 1,
      skip: 1,
    });
    assert.equal(totalCount, 3n);
    assert.notEqual(nextPageToken, '');
    const [found] = artifactVersions;
    assert.ok(found?.updateTime);
    assert.match(found.uid, new RegExp(`^${django.uid}/[0-9a-f]{16}$`));
    assert.deepEqual(
      [found.name, found.version, found.description, found.sizeBytes, found.createTime],
      ['Django', '4.10', 'Django 4.10', 100n, timestampFromMs(START + 2 * DAY)],
    );
  });

  test('a missing artifact and one out of reach get the same error', async () => {
    const { uid } = await find('Django');
    const unprivileged = fixture.as(await (await callerWithoutRole(fixture.server, group)).token());
    const elsewhere = fixture.as(
      await (await callerWithRole(fixture.server, 'viewer', await fixture.newGroup())).token(),
    );
    const missing = `${group}/${'0'.repeat(16)}`;
    for (const [caller, artifactId] of [
      [viewer, suffixOf(missing)],
      [elsewhere, suffixOf(uid)],
    ] as const) {
      const error = await rejects(caller.call(listArtifactVersions, { artifactId }), Code.NOT_FOUND);
      assert.equal(error.detail('ResourceInfo')?.resourceType, 'artifact');
    }
    const error = await rejects(viewer.call(listArtifactVersions, { artifactId: 'Django' }), Code.INVALID_ARGUMENT);
    assert.deepEqual(error.fields, ['artifact_id']);
    for (const call of [
      unprivileged.call(listArtifactVersions, { artifactId: suffixOf(uid) }),
      unprivileged.call(listArtifacts, { ecosystems: [PYTHON] }),
    ]) {
      await rejects(call, Code.PERMISSION_DENIED);
    }
    const { counts } = await unprivileged.call(getArtifactCount, { ecosystems: [PYTHON] });
    assert.deepEqual(
      counts.map(({ totalCount }) => totalCount),
      [0n],
    );
  });

  test('v1 serves the same artifacts with its own messages', async () => {
    const { method } = V1Artifacts;
    const page = await viewer.call(method.list, { pageSize: 2, skip: 1 });
    assert.deepEqual(
      page.items.map(({ name }) => name),
      ['Django', 'org.apache.commons:commons-lang3'],
    );
    assert.deepEqual([page.totalArtifacts, page.skipped], [6, 1]);
    const django = await find('Django');
    const [first] = page.items;
    assert.deepEqual(
      [first?.id, first?.ecosystem, first?.latestVersion, first?.versionCount, first?.createdAt],
      [django.uid, PYTHON as number, '4.10', 3, django.createTime],
    );
    assert.equal((await viewer.call(method.list, { remediated: true })).totalArtifacts, 1);
    const { items } = await viewer.call(method.listVersions, { id: django.uid });
    assert.deepEqual(
      items.map(({ name, version, sizeBytes }) => [name, version, sizeBytes]),
      ['5.0rc1', '4.10', '4.2'].map((text) => ['Django', text, 100n]),
    );
    const { counts } = await viewer.call(method.getArtifactCount, {});
    assert.deepEqual(
      counts.map(({ totalArtifacts }) => totalArtifacts),
      [2, 4],
    );
    const wrong = viewer.call(method.listVersions, { id: 'Django' });
    assert.deepEqual((await rejects(wrong, Code.INVALID_ARGUMENT)).fields, ['id']);
  });

  test('concurrent imports of versions of one library all succeed', async () => {
    const parent = await fixture.newGroup();
    const importVersion = (text: string) =>
      fixture.api.call(importPythonLibraries, { parent, versions: [version('shared', text, 1)] });
    const outcomes = await Promise.all(['1', '2', '3', '3', '4'].map(importVersion));
    assert.equal(
      outcomes.reduce((sum, { created }) => sum + created, 0),
      4,
    );
    const parentViewer = fixture.as(await (await callerWithRole(fixture.server, 'viewer', parent)).token());
    const { artifacts } = await parentViewer.call(listArtifacts, { ecosystems: [PYTHON] });
    assert.deepEqual(
      artifacts.map(({ versionCount, latestVersion }) => [versionCount, latestVersion]),
      [[4, '4']],
    );
  });

  test('validation errors name the invalid value', async () => {
    const bad = async (work: Promise<unknown>, field: string) =>
      assert.deepEqual((await rejects(work, Code.INVALID_ARGUMENT)).fields, [field]);
    await bad(list({}), 'ecosystems');
    await bad(list({ ecosystems: [PYTHON, Ecosystem.UNSPECIFIED] }), 'ecosystems[1]');
    await bad(list({ ecosystems: [PYTHON], orderBy: 'description' }), 'order_by');
    await bad(viewer.call(getArtifactCount, {}), 'ecosystems');
    await bad(viewer.call(getArtifactCount, { ecosystems: [Ecosystem.UNSPECIFIED] }), 'ecosystems[0]');
    const many = Array.from({ length: 1001 }, (_, i) => version(`many-${i}`, '1', 1));
    await bad(fixture.api.call(importPythonLibraries, { parent: group, versions: many }), 'versions');
  });

  test('a repeated import changes nothing, and another file is added to its version', async () => {
    const parent = await fixture.newGroup();
    const add = async (...versions: VersionInit[]) => {
      const { created, updated, unchanged, refusals } = await fixture.api.call(importPythonLibraries, {
        parent,
        versions,
      });
      assert.deepEqual(refusals, []);
      return [created, updated, unchanged];
    };
    const wheel = version('Pkg', '1.0-beta1', 10);
    const sdist = { ...version('pkg', '1.0b1', 8), files: [{ name: 'pkg-1.0b1.tar.gz', sizeBytes: 7n }] };
    assert.deepEqual(await add(wheel, sdist), [2, 0, 0]);
    const parentViewer = fixture.as(await (await callerWithRole(fixture.server, 'viewer', parent)).token());
    const read = async () => {
      const [artifact] = (await parentViewer.call(listArtifacts, { ecosystems: [PYTHON] })).artifacts;
      assert.ok(artifact);
      const artifactId = suffixOf(artifact.uid);
      return [artifact, (await parentViewer.call(listArtifactVersions, { artifactId })).artifactVersions] as const;
    };
    const [artifact, [one, another]] = await read();
    assert.equal(another, undefined, '1.0-beta1 is 1.0b1');
    assert.deepEqual([artifact.name, one?.version, one?.sizeBytes], ['Pkg', '1.0b1', 107n]);
    assert.deepEqual(one?.createTime, timestampFromMs(START + 10 * DAY));

    assert.deepEqual(await add(wheel, sdist), [0, 0, 2]);
    assert.deepEqual(await add({ ...sdist, description: 'another one' }), [0, 0, 1]);
    assert.deepEqual(await read(), [artifact, [one]]);

    assert.deepEqual(await add({ ...sdist, files: [{ name: 'pkg-1.0b1.tar.gz', sizeBytes: 9n }] }), [0, 1, 0]);
    assert.deepEqual(await add({ ...sdist, remediated: true }), [0, 1, 0]);
    const [grown, [version1]] = await read();
    assert.equal(version1?.sizeBytes, 107n, 'a file replaces the one with its name');
    assert.equal(grown.versionCount, 1);
    assert.deepEqual(grown.createTime, artifact.createTime);
    assert.equal((await parentViewer.call(listArtifacts, { ecosystems: [PYTHON], remediated: true })).totalCount, 1n);
  });

  test('refused versions do not prevent the import of others', async () => {
    const parent = await fixture.newGroup();
    const { created, refusals } = await fixture.api.call(importJavaLibraries, {
      parent,
      versions: [
        version('no-group', '1', 1),
        version('a:b', '1', 1),
        version('a:c', '1 2', 1),
        version('a:d', '1', 1, { files: [] }),
        version('a:e', '1', 1, { files: [{ name: 'x', sizeBytes: -1n }] }),
        version('a:f', '1', 1, { description: 'two\nlines' }),
        version('a:g', '1', 1, { files: [{ name: 'x' }, { name: 'x' }] }),
        version('a:h', '1', 1, { files: [{ name: 'x', sizeBytes: 2n ** 62n }] }),
      ],
    });
    assert.equal(created, 1);
    assert.deepEqual(
      refusals.map(({ index, id, field }) => [index, id, field]),
      [
        [0, 'no-group 1', 'name'],
        [2, 'a:c 1 2', 'version'],
        [3, 'a:d 1', 'files'],
        [4, 'a:e 1', 'files[0].size_bytes'],
        [5, 'a:f 1', 'description'],
        [6, 'a:g 1', 'files[1].name'],
        [7, 'a:h 1', 'files[0].size_bytes'],
      ],
    );
  });

  test('the number of files of a version is limited', async () => {
    const files = (from: number) => Array.from({ length: 1000 }, (_, i) => ({ name: `f${from + i}`, sizeBytes: 1n }));
    const versions = Array.from({ length: 3 }, (_, i) => version('huge', '1', 1, { files: files(i * 1000) }));
    const parent = await fixture.newGroup();
    const { created, refusals } = await fixture.api.call(importPythonLibraries, { parent, versions });
    assert.equal(created, 2);
    assert.deepEqual(
      refusals.map(({ index, field }) => [index, field]),
      [[2, 'files']],
    );
  });

  test('deleting a group deletes its libraries', async () => {
    const doomed = await fixture.newGroup();
    await fixture.api.call(importPythonLibraries, { parent: doomed, versions: PYTHONS });
    const seen = async () => (await fixture.api.call(listArtifacts, { ecosystems: [PYTHON] })).totalCount;
    const before = await seen();
    await fixture.api.call(deleteGroup, { uid: doomed });
    assert.equal(before - (await seen()), 4n);
  });

  test('the role to push one ecosystem does not allow pushing another', async () => {
    const parent = await fixture.newGroup();
    const pusher = fixture.as(await (await callerWithRole(fixture.server, 'libraries.python.push', parent)).token());
    const python = { parent, versions: [version('mine', '1', 1)] };
    assert.equal((await pusher.call(importPythonLibraries, python)).created, 1);
    const java = { parent, versions: [version('a:b', '1', 1)] };
    const error = await rejects(pusher.call(importJavaLibraries, java), Code.PERMISSION_DENIED);
    assert.match(error.message, /libraries\.java\.create/);
    const missing = `${parent}/${'0'.repeat(16)}`;
    await rejects(fixture.api.call(importJavaLibraries, { ...java, parent: missing }), Code.NOT_FOUND);
  });
});
