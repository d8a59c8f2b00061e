import type { Command } from 'commander';
import { addExamples } from '../help.ts';
import { addGc } from '../server/registry-gc.ts';
import { addInit } from '../server/registry-init.ts';
import { addVerify } from '../server/registry-verify.ts';
import { addLogin, addLogout } from './login.ts';

const NAME = 'registry';

/** Adds the commands for docker clients of the registry, and the maintenance of its storage. */
export function addRegistry(program: Command): void {
  const existing = program.commands.find((command) => command.name() === NAME);
  const registry =
    existing ??
    program
      .command(NAME)
      .description('configure docker clients; collect garbage, verify and repair the storage of the registry');
  if (!existing) addExamples(registry, 'wharf registry login', 'wharf registry gc --dry-run', 'wharf registry verify');
  addLogin(registry);
  addLogout(registry);
  addGc(registry);
  addVerify(registry);
  addInit(registry);
}
