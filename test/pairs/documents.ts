import { IdentitiesService } from '../../src/contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { TermsService } from '../../src/contract/gen/chainguard/platform/iam/v2/terms_pb.js';
import { ImagesService } from '../../src/contract/gen/chainguard/platform/registry/v2/images_pb.js';
import { ReposService } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { Identities } from '../../src/contract/gen/platform/events/v1/identities.platform_pb.js';
import { Terms } from '../../src/contract/gen/platform/iam/v1/terms.platform_pb.js';
import { Registry } from '../../src/contract/gen/platform/registry/v1/registry.platform_pb.js';
import type { Bench } from '../support/every-database-and-wire.ts';
import { plain, type Reading } from '../support/read-pairs.ts';
import { newRepo } from '../support/scanned-repo.ts';

const DOCUMENT = 'sfdpa.v1';

async function accepting(bench: Bench, accept: (group: string) => Promise<unknown>) {
  const asked = await bench.newGroup();
  await accept(asked);
  return { asked, shows: DOCUMENT };
}

export const termsAcceptances: Reading = {
  resource: 'terms acceptance',
  writes: {
    v1: (bench) =>
      accepting(bench, (group) => bench.api.call(Terms.method.acceptTerms, { group, documentIds: [DOCUMENT] })),
    v2: (bench) =>
      accepting(bench, (group) => bench.api.call(TermsService.method.acceptTerms, { group, documentIds: [DOCUMENT] })),
  },
  v1: async (api, group) =>
    plain((await api.call(Terms.method.listAccepted, { group })).items, { acceptedAt: 'createTime' }),
  v2: async (api, group) => {
    const { termsAcceptances } = await api.call(TermsService.method.listTermsAcceptances, { group });
    return plain(termsAcceptances.map(({ docId, acceptedBy, createTime }) => ({ docId, acceptedBy, createTime })));
  },
};

export const readmes: Reading = {
  resource: 'README of a repo',
  writes: {
    async v1(bench) {
      const { uid: id, name } = await newRepo(bench);
      await bench.api.call(Registry.method.updateRepo, { id, name, readme: '# Written by v1' });
      return { asked: id, shows: 'by v1' };
    },
    async v2(bench) {
      const { uid } = await newRepo(bench);
      const repoReadme = { uid, content: '# Written by v2' };
      await bench.api.call(ReposService.method.updateRepoReadme, { repoReadme });
      return { asked: uid, shows: 'by v2' };
    },
  },
  v1: async (api, id) => (await api.call(Registry.method.listRepos, { id })).items.map(({ readme }) => readme),
  v2: async (api, uid) => [(await api.call(ReposService.method.getRepoReadme, { uid })).content],
};

/** Whoever writes it reads it: nobody else can. */
export const identityMetadata: Reading = {
  resource: 'metadata of an identity',
  writes: {
    async v1({ api }) {
      const onboardingQuestions = { companyName: 'by v1', product: 'registry' };
      await api.call(Identities.method.updateMetadata, { onboardingQuestions });
      return { asked: '', shows: 'by v1' };
    },
    async v2({ api }) {
      const identityMetadata = { company: 'by v2', jobTitle: 'wharfinger' };
      await api.call(IdentitiesService.method.updateIdentityMetadata, { identityMetadata });
      return { asked: '', shows: 'by v2' };
    },
  },
  async v1(api) {
    const { onboardingQuestions } = await api.call(Identities.method.updateMetadata);
    const { providers: _, ...told } = onboardingQuestions ?? { providers: [] };
    return plain(told, { companyName: 'company' });
  },
  async v2(api) {
    const told = await api.call(IdentitiesService.method.updateIdentityMetadata, { identityMetadata: {} });
    const { uid: _, name: _name, givenName: _given, familyName: _family, updatesOptIn: _news, ...rest } = told;
    return plain(rest);
  },
};

export const images: Reading = {
  resource: 'image',
  writes: {
    async 'a push'(bench) {
      const { uid, image } = await newRepo(bench);
      const { digest, contentSize } = await image('layer', 'latest');
      return { asked: `${uid} ${digest}`, shows: String(contentSize) };
    },
  },
  async v1(api, asked) {
    const [repoId = '', digest = ''] = asked.split(' ');
    const { archs } = await api.call(Registry.method.getArchs, { repoId, digest });
    const { size, arch } = await api.call(Registry.method.getSize, { repoId, digest });
    return { archs, size, arch };
  },
  async v2(api, asked) {
    const [repoUid = '', digest = ''] = asked.split(' ');
    const { architectures } = await api.call(ImagesService.method.getArchitectures, { repoUid, digest });
    const { size, architecture } = await api.call(ImagesService.method.getSize, { repoUid, digest });
    return { archs: architectures, size, arch: architecture };
  },
};
