import type { Command } from 'commander';
import { example } from '../help.ts';
import { addGc } from '../server/registry-gc.ts';
import { addLogin, addLogout } from './login.ts';

const NAME = 'registry';

/** Beside the resources of the registry: using it with docker and its kin, and keeping it clean. */
export function addRegistry(program: Command): void {
  const known = program.commands.find((command) => command.name() === NAME);
  const registry = known ?? program.command(NAME).description('repositories of images, and their clients');
  if (!known) example(registry, 'wharf registry login', 'wharf registry gc --dry-run');
  addLogin(registry);
  addLogout(registry);
  addGc(registry);
}
