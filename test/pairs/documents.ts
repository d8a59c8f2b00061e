import { IdentitiesService } from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { TermsService } from '../../src/contract/gen/chainguard/platform/iam/v2/terms_pb.js';
import { ImagesService } from '../../src/contract/gen/chainguard/platform/registry/v2/images_pb.js';
import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { Identities } from '../../src/contract/gen/platform/events/v1/identities.platform_pb.js';
import { Terms } from '../../src/contract/gen/platform/iam/v1/terms.platform_pb.js';
import { Registry } from '../../src/contract/gen/platform/registry/v1/registry.platform_pb.js';
import type { ApiFixture } from '../support/api-fixture.ts';
import { type ReadPair, toPlainObject } from '../support/read-pairs.ts';
import { newScannedRepo } from '../support/scanned-repo.ts';

const DOCUMENT = 'sfdpa.v1';

/** Accepts a document for a new group. */
async function acceptForNewGroup(fixture: ApiFixture, accept: (group: string) => Promise<unknown>) {
  const group = await fixture.newGroup();
  await accept(group);
  return { query: group, expectedText: DOCUMENT };
}

export const termsAcceptances: ReadPair = {
  resource: 'terms acceptance',
  writers: {
    v1: (fixture) =>
      acceptForNewGroup(fixture, (group) =>
        fixture.api.call(Terms.method.acceptTerms, { group, documentIds: [DOCUMENT] }),
      ),
    v2: (fixture) =>
      acceptForNewGroup(fixture, (group) =>
        fixture.api.call(TermsService.method.acceptTerms, { group, documentIds: [DOCUMENT] }),
      ),
  },
  v1: async (api, group) =>
    toPlainObject((await api.call(Terms.method.listAccepted, { group })).items, { acceptedAt: 'createTime' }),
  v2: async (api, group) => {
    const { termsAcceptances } = await api.call(TermsService.method.listTermsAcceptances, { group });
    return toPlainObject(
      termsAcceptances.map(({ docId, acceptedBy, createTime }) => ({ docId, acceptedBy, createTime })),
    );
  },
};

export const readmes: ReadPair = {
  resource: 'README of a repo',
  writers: {
    async v1(fixture) {
      const { uid: id, name } = await newScannedRepo(fixture);
      await fixture.api.call(Registry.method.updateRepo, { id, name, readme: '# Written by v1' });
      return { query: id, expectedText: 'by v1' };
    },
    async v2(fixture) {
      const { uid } = await newScannedRepo(fixture);
      const repoReadme = { uid, content: '# Written by v2' };
      await fixture.api.call(ReposService.method.updateRepoReadme, { repoReadme });
      return { query: uid, expectedText: 'by v2' };
    },
  },
  v1: async (api, id) => (await api.call(Registry.method.listRepos, { id })).items.map(({ readme }) => readme),
  v2: async (api, uid) => [(await api.call(ReposService.method.getRepoReadme, { uid })).content],
};

/** An identity can read only its own metadata, as the response of an update. */
export const identityMetadata: ReadPair = {
  resource: 'metadata of an identity',
  writers: {
    async v1({ api }) {
      const onboardingQuestions = { companyName: 'by v1', product: 'registry' };
      await api.call(Identities.method.updateMetadata, { onboardingQuestions });
      return { query: '', expectedText: 'by v1' };
    },
    async v2({ api }) {
      const identityMetadata = { company: 'by v2', jobTitle: 'wharfinger' };
      await api.call(IdentitiesService.method.updateIdentityMetadata, { identityMetadata });
      return { query: '', expectedText: 'by v2' };
    },
  },
  async v1(api) {
    const { onboardingQuestions } = await api.call(Identities.method.updateMetadata);
    const { providers: _, ...fields } = onboardingQuestions ?? { providers: [] };
    return toPlainObject(fields, { companyName: 'company' });
  },
  async v2(api) {
    const metadata = await api.call(IdentitiesService.method.updateIdentityMetadata, { identityMetadata: {} });
    const { uid: _, name: _name, givenName: _given, familyName: _family, updatesOptIn: _updates, ...fields } = metadata;
    return toPlainObject(fields);
  },
};

export const images: ReadPair = {
  resource: 'image',
  writers: {
    async 'a push'(fixture) {
      const { uid, addImage: image } = await newScannedRepo(fixture);
      const { digest, contentSize } = await image('layer', 'latest');
      return { query: `${uid} ${digest}`, expectedText: String(contentSize) };
    },
  },
  async v1(api, query) {
    const [repoId = '', digest = ''] = query.split(' ');
    const { archs } = await api.call(Registry.method.getArchs, { repoId, digest });
    const { size, arch } = await api.call(Registry.method.getSize, { repoId, digest });
    return { archs, size, arch };
  },
  async v2(api, query) {
    const [repoUid = '', digest = ''] = query.split(' ');
    const { architectures } = await api.call(ImagesService.method.getArchitectures, { repoUid, digest });
    const { size, architecture } = await api.call(ImagesService.method.getSize, { repoUid, digest });
    return { archs: architectures, size, arch: architecture };
  },
};
