import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  CatalogTier,
  type Repo,
  ReposService,
} from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { type Tag, TagsService } from '../../src/contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import * as v1 from '../../src/contract/gen/platform/registry/v1/registry.platform_pb.js';
import type { ApiFixture } from '../support/api-fixture.ts';
import { digestOf, insertImage, withStore } from '../support/images.ts';
import type { VersionPair } from '../support/version-pairs.ts';

const { method } = v1.Registry;

/** Names of repos and tags cannot contain spaces. */
const withoutSpaces = (name: string): string => name.replaceAll(' ', '-');

const overlay = {
  contents: { packages: ['curl'], runtimeKeyring: [{ name: 'key.rsa.pub', content: 'a key' }] },
  environment: { GREETING: 'hello' },
};
const certificates = { additional: [{ name: 'ca', content: '-----BEGIN CERTIFICATE-----' }] };

export const repos: VersionPair<v1.Repo, Repo> = {
  resource: 'repo',
  v1: {
    create: (api, parentId, name) =>
      api.call(method.createRepo, {
        parentId,
        repo: {
          name: withoutSpaces(name),
          description: 'by v1',
          catalogTier: v1.CatalogTier.AI,
          bundles: ['base'],
          customOverlay: {
            ...overlay,
            certificates,
            accounts: {
              runAs: 'app',
              users: [{ userName: 'app', uid: 1000, gid: 1000, groupName: 'staff' }],
              groups: [{ groupName: 'staff', gid: 1000, members: ['app'] }],
            },
          },
        },
      }),
    find: async (api, id) => (await api.call(method.listRepos, { id })).items,
    update: (api, { id, name }) =>
      api.call(method.updateRepo, { id, name, catalogTier: v1.CatalogTier.FIPS, aliases: ['a:b'] }),
    remove: (api, id) => api.call(method.deleteRepo, { id }),
    commonFields: ({ id: uid, name, description, catalogTier, bundles, aliases, customOverlay, createTime }) => ({
      ...{ uid, name, description, bundles, aliases, tier: v1.CatalogTier[catalogTier] },
      packages: customOverlay?.contents?.packages,
      keys: customOverlay?.contents?.runtimeKeyring.map((key) => key.name),
      environment: customOverlay?.environment,
      users: customOverlay?.accounts?.users.map((user) => [user.userName, user.uid, user.gid ?? 0, user.groupName]),
      groups: customOverlay?.accounts?.groups.map((group) => [group.groupName, group.gid, group.members]),
      certificates: customOverlay?.certificates?.additional.map((certificate) => certificate.content),
      created: createTime && timestampMs(createTime),
    }),
  },
  v2: {
    create: (api, parent, name) =>
      api.call(ReposService.method.createRepo, {
        parent,
        repo: {
          name: withoutSpaces(name),
          description: 'by v2',
          catalogTier: CatalogTier.DEVTOOLS,
          customOverlay: { ...overlay, certificates, accounts: { users: [{ username: 'root' }] } },
        },
      }),
    get: (api, uid) => api.call(ReposService.method.getRepo, { uid }),
    find: async (api, uid) => (await api.call(ReposService.method.listRepos, { uidp: { ids: [uid] } })).repos,
    update: (api, { uid }) =>
      api.call(ReposService.method.updateRepo, { repo: { uid, description: 'changed', bundles: ['fips'] } }),
    remove: (api, uid) => api.call(ReposService.method.deleteRepo, { uid }),
    commonFields: ({ uid, name, description, catalogTier, bundles, aliases, customOverlay, createTime }) => ({
      ...{ uid, name, description, bundles, aliases, tier: CatalogTier[catalogTier] },
      packages: customOverlay?.contents?.packages,
      keys: customOverlay?.contents?.runtimeKeyring.map((key) => key.name),
      environment: customOverlay?.environment,
      users: customOverlay?.accounts?.users.map((user) => [user.username, user.uid, user.gid, user.groupName]),
      groups: customOverlay?.accounts?.groups.map((group) => [group.groupname, group.gid, group.members]),
      certificates: customOverlay?.certificates?.additional.map((certificate) => certificate.content),
      created: createTime && timestampMs(createTime),
    }),
  },
};

let repoCount = 0;
const IMAGES = ['one', 'two'];

/** The digests of the two images in every repo of `createRepoWithImages`. */
const digests: string[] = [];

async function createRepoWithImages({ api, org, server }: ApiFixture): Promise<string> {
  const repo = { name: `tagged-${++repoCount}` };
  const { uid } = await api.call(ReposService.method.createRepo, { parent: org, repo });
  await withStore(server, async (store) => {
    for (const content of IMAGES) {
      const { digest } = await insertImage(store, uid, undefined, { content });
      if (!digests.includes(digest)) digests.push(digest);
    }
  });
  return uid;
}

const [FIRST, SECOND] = [0, 1];
const digestAt = (at: number): string => digests[at] ?? digestOf('missing');

export const tags: VersionPair<v1.Tag, Tag> = {
  resource: 'tag',
  parent: createRepoWithImages,
  v1: {
    create: (api, repoId, name) =>
      api.call(method.createTag, {
        repoId,
        tag: { name: withoutSpaces(name), digest: digestAt(FIRST), bundles: ['base'] },
      }),
    find: async (api, id) => (await api.call(method.listTags, { id })).items,
    update: (api, { id, name }) => api.call(method.updateTag, { id, name, digest: digestAt(SECOND), deprecated: true }),
    remove: (api, id) => api.call(method.deleteTag, { id }),
    commonFields: ({ id: uid, name, digest, deprecated, bundles, lastUpdated }) => ({
      ...{ uid, name, digest, deprecated, bundles },
      updated: lastUpdated && timestampMs(lastUpdated),
    }),
  },
  v2: {
    create: (api, parent, name) =>
      api.call(TagsService.method.createTag, {
        parent,
        tag: { name: withoutSpaces(name), digest: digestAt(FIRST), deprecated: true },
      }),
    get: (api, uid) => api.call(TagsService.method.getTag, { uid }),
    find: async (api, uid) => (await api.call(TagsService.method.listTags, { uidp: { ids: [uid] } })).tags,
    remove: (api, uid) => api.call(TagsService.method.deleteTag, { uid }),
    commonFields: ({ uid, name, digest, deprecated, bundles, updateTime }) => ({
      ...{ uid, name, digest, deprecated, bundles },
      updated: updateTime && timestampMs(updateTime),
    }),
  },
};
