import { RepoSchema } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { repos } from '../../src/domains/registry/repos/repos.ts';
import { defineResource, type Resource } from '../../src/resource/definition.ts';

/**
 * The declaration of repos in the test build: `description` and the second version of `aliases` are new orders, and `name`
 * has become a facet.
 */
export const changedRepos: Resource<typeof RepoSchema> = defineResource({
  ...repos,
  schema: RepoSchema,
  orders: { description: (repo) => repo.description, aliases: (repo) => repo.aliases.join() },
  facets: { name: (repo) => [repo.name] },
  indexVersions: { aliases: 2 },
});
