import { type Command, Option } from 'commander';
import { systemClock } from '../../base/clock.ts';
import type { Recovery } from '../../identity/owner/recover.ts';
import { addExamples } from '../help.ts';
import { terminalOf } from '../output/terminal.ts';
import { jsonText } from '../output/text.ts';
import { type Output, outputs } from '../settings/config-file.ts';
import { openServerStore } from './open-server-store.ts';
import { addSettingOptions, readServerSettings } from './setting-options.ts';

interface Options {
  readonly newKey?: boolean;
  readonly organization?: string;
  readonly output?: Output;
}

/** Adds the recovery of the owner. It opens the database directly, whether a server is running or not. */
export function addOwner(program: Command): void {
  const owner = program.command('owner').description('the owner of a server, in its data directory and database');
  addExamples(owner, 'wharf owner recover', 'wharf owner recover --data /srv/wharf');
  const recover = owner
    .command('recover')
    .description('give a locked-out operator access again: its key, identity, organization and role')
    .option('--new-key', 'replace the key in owner.json; tokens of the old key become invalid')
    .option('--organization <uid>', 'make the owner an operator of this organization too')
    .addOption(new Option('-o, --output <format>', 'the output format (default: "table")').choices(outputs));
  addSettingOptions(recover, ['data', 'databaseUrl', 'org']);
  addExamples(recover, 'wharf owner recover', 'wharf owner recover --new-key --data /srv/wharf');
  recover.action(async ({ newKey = false, organization, output }: Options) => {
    const { config } = await readServerSettings(recover);
    // Loaded here so that the other commands start without loading the server.
    const { recoverOwner } = await import('../../identity/owner/recover.ts');
    const { createLogger } = await import('../../base/log.ts');
    const store = await openServerStore(config, terminalOf(recover));
    try {
      const options = { newKey, name: config.org, organization };
      const recovery = await recoverOwner(store, config.data, options, systemClock);
      // The log redacts fields with `key` in their names.
      const { newKey: replacesOwnerFile, ...rest } = recovery;
      createLogger({ level: 'info' }).warn(
        { ...rest, replacesOwnerFile },
        'the owner was recovered on the command line',
      );
      const { out, width } = terminalOf(recover);
      out(output === 'json' ? jsonText({ ...recovery }, width !== undefined) : textOf(recovery, config.data));
    } finally {
      await store.close();
    }
  });
}

function textOf(recovery: Recovery, data: string): string {
  const created = [
    recovery.newKey && 'key',
    recovery.newIdentity && 'identity',
    recovery.newOrganization && 'organization',
    recovery.newBinding && 'role',
  ].filter((part) => part !== false);
  const what = created.length > 0 ? `new: ${created.join(', ')}` : 'nothing was missing';
  return `the owner ${recovery.identity} is an operator of ${recovery.organization} (${what})
Get a token with: wharf auth token --data ${data}
`;
}
