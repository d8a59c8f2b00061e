import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { Code } from '../../src/base/errors.ts';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import {
  CatalogTier,
  type RepoSchema,
  ReposService,
} from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { TagsService } from '../../src/contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { callerWithoutRole, callerWithRole } from '../support/callers.ts';
import { insertImage, withStore } from '../support/images.ts';
import { eventsAbout } from '../support/inspect.ts';
import { rejects } from '../support/rejects.ts';

const { createRepo, getRepo, listRepos, updateRepo, deleteRepo, getRepoReadme, updateRepoReadme } = ReposService.method;
const { deleteGroup, getGroup, updateGroup } = GroupsService.method;
const { listTags } = TagsService.method;

const REPO_CREATED = 'dev.chainguard.api.platform.registry.repo.created.v1';
const REPO_UPDATED = 'dev.chainguard.api.platform.registry.repo.updated.v1';
const REPO_DELETED = 'dev.chainguard.api.platform.registry.repo.deleted.v1';

type Init = MessageInitShape<typeof RepoSchema>;

onEveryDatabaseAndWire('repos', (fixture) => {
  let group: string;
  before(async () => {
    group = await fixture.newGroup();
  });

  let repos = 0;
  const newRepo = (repo: Init = {}, parent = group) =>
    fixture.api.call(createRepo, { parent, repo: { name: `repo-${++repos}`, ...repo } });
  const change = (uid: string, repo: Init, ...paths: string[]) =>
    fixture.api.call(updateRepo, { repo: { uid, ...repo }, ...(paths.length > 0 && { updateMask: { paths } }) });
  const namesIn = async (request: MessageInitShape<typeof listRepos.input>) =>
    (await fixture.api.call(listRepos, request)).repos.map(({ name }) => name);

  test('a repo is created and read back with all its fields', async () => {
    const created = await newRepo({
      name: 'nginx',
      description: 'serves',
      catalogTier: CatalogTier.BASE,
      bundles: ['base', 'ai-gpu'],
      aliases: ['docker.io/library/nginx:latest', 'nginx:1'],
      activeTags: ['latest', '1.27'],
      customOverlay: {
        contents: {
          packages: ['curl', 'jq=1.7'],
          runtimeRepositories: ['https://packages.example.com/os'],
          runtimeKeyring: [{ name: 'key.rsa.pub', content: 'key' }],
        },
        environment: { PATH: '/bin' },
        annotations: { 'com.example.team': 'web' },
        accounts: {
          runAs: 'web',
          users: [
            { username: 'web', uid: 65532, gid: 65532, groupName: 'web', shell: '/bin/sh', homeDir: '/home/web' },
          ],
          groups: [{ groupname: 'web', gid: 65532, members: ['web'] }],
        },
        certificates: {
          additional: [{ name: 'ca', content: '-----BEGIN CERTIFICATE-----\n…' }],
          providers: ['internal'],
        },
      },
    });
    assert.match(created.uid, new RegExp(`^${group}/[0-9a-f]{16}$`));
    assert.ok(created.createTime && created.updateTime);
    assert.deepEqual(await fixture.api.call(getRepo, { uid: created.uid }), created);
    const [event] = await eventsAbout(fixture.db, created.uid);
    assert.equal(event?.type, REPO_CREATED);
    assert.equal(event?.scope, group);
    assert.equal(event?.body?.name, 'nginx');
  });

  test('names are unique in a group and valid in registry paths', async () => {
    await newRepo({ name: 'taken' });
    await rejects(newRepo({ name: 'taken' }), Code.ALREADY_EXISTS);
    await newRepo({ name: 'taken' }, await fixture.newGroup());
    for (const name of ['a', 'a.b', 'a_b', 'a__b', 'a--b', '0', 'x'.repeat(255)]) await newRepo({ name });
    for (const name of ['', 'A', 'a b', 'a/b', '.a', 'a.', 'a..b', 'a___b', '-a', 'ä', 'x'.repeat(256)]) {
      await rejects(newRepo({ name }), Code.INVALID_ARGUMENT, (error) => assert.deepEqual(error.fields, ['name']));
    }
    await rejects(newRepo({}, `${group}/0123456789abcdef`), Code.NOT_FOUND);
  });

  const wrong: readonly (readonly [field: string, repo: Init])[] = [
    ['description', { description: 'two\nlines' }],
    ['catalog_tier', { catalogTier: 99 as CatalogTier }],
    ['bundles[1]', { bundles: ['base', 'fancy'] }],
    ['aliases[0]', { aliases: ['no-tag'] }],
    ['active_tags[0]', { activeTags: ['-latest'] }],
    ['sync_config.source', { syncConfig: {} }],
    ['sync_config.source', { syncConfig: { source: 'f'.repeat(40) } }],
    ['sync_config.google', { syncConfig: { source: 'a', google: 'two\nlines' } }],
    ['custom_overlay.environment[CHAINGUARD_X]', { customOverlay: { environment: { CHAINGUARD_X: '1' } } }],
    ['custom_overlay.environment[a b]', { customOverlay: { environment: { 'a b': '1' } } }],
    ['custom_overlay.annotations[dev.chainguard.x]', { customOverlay: { annotations: { 'dev.chainguard.x': '1' } } }],
    [
      'custom_overlay.annotations[org.opencontainers.image.title]',
      { customOverlay: { annotations: { 'org.opencontainers.image.title': '1' } } },
    ],
    ['custom_overlay.annotations[big]', { customOverlay: { annotations: { big: 'x'.repeat(5000) } } }],
    ['custom_overlay.contents.packages[0]', { customOverlay: { contents: { packages: ['a b'] } } }],
    ['custom_overlay.contents.packages', { customOverlay: { contents: { packages: Array(101).fill('a') } } }],
    [
      'custom_overlay.contents.runtime_keyring[0].name',
      { customOverlay: { contents: { runtimeKeyring: [{ content: 'a' }] } } },
    ],
    [
      'custom_overlay.contents.runtime_keyring[0]',
      { customOverlay: { contents: { runtimeKeyring: [{ name: '../x', content: 'a' }] } } },
    ],
    ['custom_overlay.accounts.run_as', { customOverlay: { accounts: { runAs: 'no body' } } }],
    ['custom_overlay.accounts.users[0]', { customOverlay: { accounts: { users: [{ username: 'a', uid: -1 }] } } }],
    ['custom_overlay.accounts.groups[0]', { customOverlay: { accounts: { groups: [{ groupname: 'a:b' }] } } }],
    [
      'custom_overlay.certificates.additional[0]',
      { customOverlay: { certificates: { additional: [{ name: 'a', content: 'no PEM' }] } } },
    ],
  ];
  for (const [field, repo] of wrong) {
    test(`${field} is refused: ${JSON.stringify(repo).slice(0, 60)}`, async () => {
      // Over REST an unknown enum value is refused before the validation, with the JSON name of the field.
      await rejects(newRepo(repo), Code.INVALID_ARGUMENT, (error) => {
        assert.deepEqual(
          error.fields.map((name) => name.replace(/^catalogTier$/, 'catalog_tier')),
          [field],
        );
      });
    });
  }

  test('an update changes only the fields in its mask', async () => {
    const { uid, name } = await newRepo({ description: 'old', bundles: ['base'], activeTags: ['latest'] });
    const described = await change(uid, { description: 'new', bundles: [] }, 'description');
    assert.equal(described.description, 'new');
    assert.deepEqual(described.bundles, ['base']);
    assert.deepEqual((await change(uid, {}, 'active_tags')).activeTags, []);
    const renamed = await change(uid, { name: `${name}-renamed` });
    assert.equal(renamed.name, `${name}-renamed`);
    assert.equal(renamed.description, 'new');
    const replaced = await change(uid, { name }, '*');
    assert.deepEqual([replaced.name, replaced.description, replaced.bundles], [name, '', []]);
    const events = await eventsAbout(fixture.db, uid);
    assert.deepEqual(
      events.map(({ type }) => type),
      [REPO_CREATED, ...Array(4).fill(REPO_UPDATED)],
    );
    await rejects(change(uid, { name: 'No' }), Code.INVALID_ARGUMENT);
    await rejects(change(uid, {}, 'readme'), Code.INVALID_ARGUMENT, (e) => assert.deepEqual(e.fields, ['update_mask']));
    const { name: other } = await newRepo();
    await rejects(change(uid, { name: other }), Code.ALREADY_EXISTS);
    await rejects(change(`${group}/0123456789abcdef`, { name: 'x' }), Code.NOT_FOUND);
  });

  test('repos are listed by hierarchy and name, in order, with exact totals', async () => {
    const org = await fixture.newGroup();
    const team = await fixture.newGroup(org);
    for (const name of ['b', 'a', 'c']) await newRepo({ name }, org);
    for (const name of ['a', 'd']) await newRepo({ name }, team);
    const below = { uidp: { descendantsOf: org } };
    assert.deepEqual(await namesIn({ ...below, orderBy: 'name' }), ['a', 'a', 'b', 'c', 'd']);
    assert.deepEqual(await namesIn({ uidp: { childrenOf: team }, orderBy: 'name desc' }), ['d', 'a']);
    assert.deepEqual(await namesIn({ ...below, name: 'a' }), ['a', 'a']);
    const page = await fixture.api.call(listRepos, { ...below, orderBy: 'created_at', pageSize: 2, skip: 1 });
    assert.deepEqual([page.repos.map(({ name }) => name), page.totalCount, page.skipped], [['a', 'c'], 5n, 1]);
    assert.ok(page.nextPageToken);
  });

  test('deleting a repo deletes its tags and images, and a group with a repo cannot be deleted', async () => {
    const parent = await fixture.newGroup();
    const repo = await newRepo({ name: 'doomed' }, parent);
    await withStore(fixture.server, async (store) => {
      for (const tag of ['latest', '1.2-r3', '1.2-20260801']) await insertImage(store, repo.uid, tag, { content: tag });
    });
    const error = await rejects(fixture.api.call(deleteGroup, { uid: parent }), Code.FAILED_PRECONDITION);
    assert.match(error.message, /cannot delete group with child repos/);
    await fixture.api.call(deleteRepo, { uid: repo.uid });
    await rejects(fixture.api.call(getRepo, { uid: repo.uid }), Code.NOT_FOUND);
    await rejects(fixture.api.call(deleteRepo, { uid: repo.uid }), Code.NOT_FOUND);
    assert.equal((await fixture.api.call(listTags, { uidp: { descendantsOf: parent } })).totalCount, 0n);
    for (const table of ['manifest', 'manifest_link', 'blob_link', 'tag_target', 'tag_history']) {
      const left = await fixture.db.get<{ n: number }>(`SELECT count(*) AS n FROM ${table} WHERE repo = $1`, repo.uid);
      assert.equal(left?.n, 0, table);
    }
    const events = await eventsAbout(fixture.db, repo.uid);
    assert.deepEqual(events.at(-1)?.type, REPO_DELETED);
    await newRepo({ name: 'doomed' }, parent);
  });

  test('the README is stored with the repo', async () => {
    const { uid, createTime } = await newRepo();
    const empty = await fixture.api.call(getRepoReadme, { uid });
    assert.equal(empty.content, '');
    assert.deepEqual([empty.uid, empty.createTime], [uid, createTime]);

    const content =
      '# Title\n\n<!-- note -->\n\n```go\nfunc main() {}\n```\n\n<img src="a.png" width="10" height="10">\n';
    const written = await fixture.api.call(updateRepoReadme, { repoReadme: { uid, content } });
    assert.equal(written.content, content);
    assert.deepEqual(await fixture.api.call(getRepoReadme, { uid }), written);
    assert.deepEqual((await fixture.api.call(getRepo, { uid })).updateTime, written.updateTime);
    assert.deepEqual(
      (await eventsAbout(fixture.db, uid)).map(({ type, bodyType }) => [type, bodyType?.split('.').at(-1)]),
      [
        [REPO_CREATED, 'Repo'],
        [REPO_UPDATED, 'Repo'],
      ],
    );
    await change(uid, { description: 'the readme stays' });
    assert.equal((await fixture.api.call(getRepoReadme, { uid })).content, content);
    const cleared = await fixture.api.call(updateRepoReadme, {
      repoReadme: { uid },
      updateMask: { paths: ['content'] },
    });
    assert.equal(cleared.content, '');
    await rejects(fixture.api.call(getRepoReadme, { uid: `${group}/0123456789abcdef` }), Code.NOT_FOUND);
  });

  test('a README with active content is refused', async () => {
    const { uid } = await newRepo();
    for (const content of ['<script>alert(1)</script>', '[x](javascript:alert(1))', 'a'.repeat(200_000)]) {
      const error = await rejects(
        fixture.api.call(updateRepoReadme, { repoReadme: { uid, content } }),
        Code.INVALID_ARGUMENT,
      );
      assert.deepEqual(error.fields, ['content']);
    }
  });

  test('a synced repo has the labels of its source, and they can be changed only there', async () => {
    const parent = await fixture.newGroup();
    const source = await newRepo({ name: 'upstream', bundles: ['base'], aliases: ['a:b'] }, parent);
    const follower = await newRepo({ name: 'mirror', syncConfig: { source: source.uid, uniqueTags: true } }, parent);
    assert.equal(follower.syncConfig?.source, source.uid);
    assert.equal(follower.syncConfig?.uniqueTags, false, 'output only');
    assert.deepEqual([follower.bundles, follower.aliases], [['base'], ['a:b']]);

    for (const repo of [{ bundles: ['fips'] }, { aliases: ['c:d'] }, { activeTags: ['x'] }, { catalogTier: 1 }]) {
      const error = await rejects(change(follower.uid, repo), Code.INVALID_ARGUMENT);
      assert.equal(error.fields.length, 1);
      await rejects(newRepo({ ...repo, syncConfig: { source: source.uid } }, parent), Code.INVALID_ARGUMENT);
    }
    await change(follower.uid, { bundles: ['base'], description: 'said again' });

    await change(source.uid, { bundles: ['fips'] });
    assert.deepEqual((await fixture.api.call(getRepo, { uid: follower.uid })).bundles, ['fips']);
    const { repos: listed } = await fixture.api.call(listRepos, { uidp: { childrenOf: parent }, name: 'mirror' });
    assert.deepEqual(listed[0]?.bundles, ['fips']);

    await rejects(change(source.uid, { syncConfig: { source: source.uid } }), Code.INVALID_ARGUMENT);
    await rejects(newRepo({ syncConfig: { source: follower.uid } }, parent), Code.INVALID_ARGUMENT);
    const freed = await change(follower.uid, { bundles: ['ai'] }, 'sync_config', 'bundles');
    assert.deepEqual([freed.syncConfig, freed.bundles], [undefined, ['ai']]);
  });

  test('a source can be a name or an image reference of a repo in reach', async () => {
    const parent = await fixture.newGroup();
    // Paths cannot contain the spaces in the names of test groups.
    const path = `path-${parent.slice(-6)}`;
    await fixture.api.call(updateGroup, { group: { uid: parent, name: path } });
    const { name: org } = await fixture.api.call(getGroup, { uid: fixture.org });
    const name = `upstream-${parent.slice(-6)}`;
    const { uid } = await newRepo({ name }, parent);
    const references = [
      name,
      `${name}:1.2`,
      `${org}/${path}/${name}`,
      `registry.example.com:5000/${org}/${path}/${name}:1@sha256:a`,
    ];
    for (const source of references) {
      const { syncConfig } = await newRepo({ syncConfig: { source } });
      assert.equal(syncConfig?.source, uid, source);
    }
    const elsewhere = await newRepo({ syncConfig: { source: 'registry.example.com/elsewhere/app' } });
    assert.equal(elsewhere.syncConfig?.source, 'registry.example.com/elsewhere/app');

    await newRepo({ name }, await fixture.newGroup(parent));
    await rejects(newRepo({ syncConfig: { source: name } }), Code.INVALID_ARGUMENT);
    // For a caller that cannot see the repo, the source is just a name.
    const editor = await callerWithRole(fixture.server, 'editor', group);
    const api = fixture.as(await editor.token());
    const repo = { name: 'reaches-out', syncConfig: { source: `${org}/${path}/${name}` } };
    const { syncConfig } = await api.call(createRepo, { parent: group, repo });
    assert.equal(syncConfig?.source, repo.syncConfig.source);
    await rejects(
      api.call(createRepo, { parent: group, repo: { name: 'by-uid', syncConfig: { source: uid } } }),
      Code.INVALID_ARGUMENT,
    );
  });

  test('each method needs its capability', async () => {
    const { uid } = await newRepo();
    const viewer = fixture.as(await (await callerWithRole(fixture.server, 'viewer', group)).token());
    assert.equal((await viewer.call(getRepo, { uid })).uid, uid);
    await viewer.call(getRepoReadme, { uid });
    await rejects(viewer.call(updateRepoReadme, { repoReadme: { uid, content: 'x' } }), Code.PERMISSION_DENIED);
    await rejects(viewer.call(createRepo, { parent: group, repo: { name: 'x' } }), Code.PERMISSION_DENIED);
    await rejects(viewer.call(updateRepo, { repo: { uid, description: 'x' } }), Code.PERMISSION_DENIED);
    await rejects(viewer.call(deleteRepo, { uid }), Code.PERMISSION_DENIED);
    const editor = fixture.as(await (await callerWithRole(fixture.server, 'editor', group)).token());
    await editor.call(updateRepo, { repo: { uid, description: 'x' } });
    const unprivileged = fixture.as(await (await callerWithoutRole(fixture.server, group)).token());
    await rejects(unprivileged.call(getRepo, { uid }), Code.PERMISSION_DENIED);
    await rejects(unprivileged.call(listRepos, {}), Code.PERMISSION_DENIED);
  });
});
