/**
 * A server of the test build: the declaration of repos differs from that of the product. It is started like the product,
 * by environment variables.
 */
import { loadConfig } from '../../src/config.ts';
import { repos } from '../../src/domains/registry/repos/repos.ts';
import { changedRepos } from './changed-declaration.ts';

Object.assign(repos, changedRepos);
// Loaded afterwards, because some modules derive their own declarations from this one.
const { startServer } = await import('../../src/main.ts');
const server = await startServer(loadConfig({}, process.env));
process.once('SIGTERM', () => void server.stop().then(() => process.exit(0)));
