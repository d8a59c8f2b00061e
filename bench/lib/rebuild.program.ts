/** A server whose declaration of repos has one order and one facet more than that of the product, for rebuild.ts. */
import { loadConfig } from '../../src/config.ts';
import { RepoSchema } from '../../src/contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { repos } from '../../src/domains/registry/repos/repos.ts';
import { defineResource } from '../../src/resource/definition.ts';

const changed = defineResource({
  ...repos,
  schema: RepoSchema,
  orders: { name: (repo) => repo.name, description: (repo) => repo.description },
  facets: { first_letter: (repo) => [repo.name.slice(0, 1)] },
});
Object.assign(repos, changed);
// Loaded afterwards, because some modules derive their own declarations from this one.
const { startServer } = await import('../../src/main.ts');
const server = await startServer(loadConfig({}, process.env));
process.once('SIGTERM', () => void server.stop().then(() => process.exit(0)));
