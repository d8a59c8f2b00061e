import type { Command } from 'commander';
import { systemClock } from '../../base/clock.ts';
import type { LostSecret, MasterKeyLoss } from '../../identity/reset-master-key.ts';
import { CliError, ExitCode } from '../exit-codes.ts';
import { addExamples } from '../help.ts';
import { tableText } from '../output/table.ts';
import { type Terminal, terminalOf } from '../output/terminal.ts';
import { jsonText } from '../output/text.ts';
import type { StoreContext } from './keys.ts';

type WithStore = (command: Command, work: (context: StoreContext) => Promise<void>) => Promise<void>;

/** Adds the command that gives up a lost master key and what is encrypted with it. */
export function addResetMaster(command: Command, withStore: WithStore): void {
  command
    .description('give up a lost master key: list the secrets that are lost with it and, with --yes, replace it')
    .option('--yes', 'delete the lost secrets and replace the master key; stop the servers first');
  addExamples(command, 'wharf keys reset-master --data /srv/wharf', 'wharf keys reset-master --data /srv/wharf --yes');
  command.action(({ yes = false }: { readonly yes?: boolean }) =>
    withStore(command, async ({ store, source, format }) => {
      const { findMasterKeyLoss, resetMasterKey } = await import('../../identity/reset-master-key.ts');
      const terminal = terminalOf(command);
      if (!yes) {
        print(terminal, format === 'json', await findMasterKeyLoss(store, source));
        const advice = 'restore the key from a backup, or stop the servers and run this command with --yes';
        throw new CliError(ExitCode.precondition, `nothing was changed: ${advice}`);
      }
      const reset = await resetMasterKey(store, source, systemClock());
      const { createLogger } = await import('../../base/log.ts');
      const { keyId, signingKeys, secrets, formerKeyFile } = reset;
      createLogger({ level: 'info' }).warn(
        { id: keyId, signers: signingKeys, lost: secrets.map(({ kind, uid }) => `${kind} ${uid}`), formerKeyFile },
        'the master key was reset on the command line',
      );
      print(terminal, format === 'json', reset);
      if (formerKeyFile !== undefined) terminal.err(`wharf: the file that did not fit is now ${formerKeyFile}\n`);
      terminal.err(`wharf: the master key is ${keyId}: back it up, and start the servers with it\n`);
    }),
  );
}

function print({ out, width }: Terminal, isJson: boolean, { secrets, signingKeys }: MasterKeyLoss): void {
  if (isJson) {
    out(jsonText({ signingKeys, secrets: secrets.map((secret) => ({ ...secret })) }, width !== undefined));
    return;
  }
  out(`${signingKeys} signing keys are lost: access tokens that they signed become invalid\n`);
  if (secrets.length === 0) out('no other secret is lost\n');
  else
    out(
      `${secrets.length} other secrets are lost and must be set again:\n${tableText(COLUMNS, secrets.map(rowOf), width)}`,
    );
}

const COLUMNS = ['SECRET', 'OF', 'NAME', 'SET IT AGAIN WITH'];
const rowOf = ({ secret, kind, name, repair }: LostSecret): string[] => [secret, kind, name, repair];
