import { type Command, Option } from 'commander';
import { sizeParser } from '../../config-values.ts';
import type { Finding, Verification } from '../../oci/verify/verify-registry.ts';
import { CliError, ExitCode } from '../exit-codes.ts';
import { addExamples } from '../help.ts';
import { startProgress } from '../imports/progress.ts';
import { optionParser } from '../option-value.ts';
import { formatBytes } from '../output/bytes.ts';
import { type Terminal, terminalOf } from '../output/terminal.ts';
import { escapeForTerminal, jsonText } from '../output/text.ts';
import type { Output } from '../settings/config-file.ts';
import { addStorageOptions, withStorage } from './registry-command.ts';

interface Options {
  readonly rate?: number;
  readonly quarantine?: boolean;
  readonly restart?: boolean;
  readonly output?: Output;
}

/** Adds the verification of the blobs. It opens the database and the blobs directly, also while the server runs. */
export function addVerify(registry: Command): void {
  const command = addStorageOptions(
    registry
      .command('verify')
      .description(
        'read every blob and compare it with its digest, and find missing ones; the server can be running. ' +
          'An interrupted verification is resumed',
      )
      .option('--quarantine', 'move damaged blobs to registry/quarantine, so that the next push replaces them')
      .addOption(
        new Option('--rate <size>', 'the most bytes to read per second, such as 50MiB (default: unlimited)').argParser(
          optionParser((text: string) => sizeParser('64KiB', '1TiB')(text.replace(/\/s$/, ''))),
        ),
      )
      .option('--restart', 'begin again instead of resuming an interrupted verification'),
  );
  addExamples(command, 'wharf registry verify', 'wharf registry verify --quarantine --rate 50MiB --data /srv/wharf');
  command.action(() => verify(command));
}

async function verify(command: Command): Promise<void> {
  const { rate, quarantine = false, restart = false, output } = command.opts<Options>();
  const terminal = terminalOf(command);
  const isJson = output === 'json';
  await withStorage(command, async ({ store, blobs, directory }) => {
    const { verifyRegistry } = await import('../../oci/verify/verify-registry.ts');
    const { createVerifyCursor } = await import('../../blobs/verify-cursor.ts');
    const cursor = createVerifyCursor(directory);
    if (restart) await cursor.clear();
    const resumed = await cursor.read();
    if (resumed) {
      terminal.err(`wharf: resuming after ${resumed.after} (${resumed.blobs} blobs); --restart begins again\n`);
    }
    const position = { read: 0, total: POSITIONS };
    const progress = startProgress({ terminal, isQuiet: false, what: 'blobs' }, position);
    const findings: Finding[] = [];
    const verification = await verifyRegistry({
      ...{ db: store.reader, blobs, quarantine, bytesPerSecond: rate, cursor },
      onProgress(reached) {
        position.read = positionOf(reached.after);
        progress.update(reached.blobs);
      },
      onFinding(finding) {
        if (isJson) findings.push(finding);
        else terminal.out(findingText(finding));
      },
    });
    progress.end();
    print(terminal, isJson, verification, findings);
    if (verification.findings > 0) throw new CliError(ExitCode.damaged, adviceText(verification, quarantine));
  });
}

/** Digests are evenly distributed, so the first digits of the current one say how much of the whole is done. */
const POSITIONS = 0x10000;
const positionOf = (digest: string): number =>
  Number.parseInt(digest.slice(digest.indexOf(':') + 1).slice(0, 4), 16) || 0;

function print(terminal: Terminal, isJson: boolean, verification: Verification, findings: readonly Finding[]): void {
  const { blobs, bytes, findings: found } = verification;
  if (isJson)
    terminal.out(
      jsonText({ blobs, bytes, findings: structuredClone(findings) as never }, terminal.width !== undefined),
    );
  else
    terminal.out(
      `verified ${blobs} blobs, ${formatBytes(bytes)}: ${found === 0 ? 'all are intact' : `${found} are not intact`}\n`,
    );
}

/** The finding on one line, and below it one line for each repository. */
function findingText({ digest, problem, isQuarantined, affected }: Finding): string {
  const lines = affected.map(({ repository, tags, manifests }) => {
    const names = tags.length > 0 ? tags.map((tag) => `:${tag}`) : manifests.map((manifest) => `@${manifest}`);
    return `  ${escapeForTerminal(repository)}${names.length > 0 ? ` ${names.join(' ')}` : ' (no image needs it)'}\n`;
  });
  const state = isQuarantined ? `${problem}, moved to the quarantine` : problem;
  return `${digest}: ${state}\n${lines.join('') || '  no repository has it\n'}`;
}

function adviceText({ findings }: Verification, quarantine: boolean): string {
  const what = `${findings} blobs are damaged or missing`;
  const push = 'push the images above again, or restore the files from a backup';
  return quarantine ? `${what}: ${push}` : `${what}: run it with --quarantine if any is damaged, then ${push}`;
}
