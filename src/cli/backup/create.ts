import { existsSync } from 'node:fs';
import { type Command, Option } from 'commander';
import type { Manifest } from '../../backup/manifest.ts';
import type { Retention } from '../../backup/prune.ts';
import { systemClock } from '../../base/clock.ts';
import { parseRetention } from '../../config-values.ts';
import { CliError, ExitCode } from '../exit-codes.ts';
import { addExamples } from '../help.ts';
import { optionParser } from '../option-value.ts';
import { formatBytes } from '../output/bytes.ts';
import { counted } from '../output/counted.ts';
import { terminalOf } from '../output/terminal.ts';
import { protectData } from '../server/protect-data.ts';
import { addSettingOptions, readServerSettings } from '../server/setting-options.ts';
import { addTarget, type BackupOptions, printResult, withTarget } from './options.ts';
import { startProgress } from './progress.ts';
import { pruneText } from './prune.ts';

interface Options extends BackupOptions {
  readonly withMasterKey?: boolean;
  readonly full?: boolean;
  readonly keep?: Retention;
}

export function addCreate(backup: Command): void {
  const command = addTarget(backup.command('create'))
    .description('create a backup; the server can be running. Run it on the host of the server with its settings')
    .option('--with-master-key', 'include the master key; otherwise keep it in another place')
    .option('--full', 'copy all blobs, also those that the target has; repairs damaged ones')
    .addOption(
      new Option(
        '--keep <retention>',
        'then remove older backups: a number of backups, or an age such as 30d',
      ).argParser(optionParser(parseRetention)),
    );
  addSettingOptions(command, ['data', 'databaseUrl']);
  addExamples(
    command,
    'wharf backup create /mnt/backups --data /srv/wharf',
    "wharf backup create 's3://bucket/wharf?region=eu-central-1' --keep 30d",
  );
  command.action((location: string, options: Options) => create(command, location, options));
}

async function create(command: Command, location: string, options: Options): Promise<void> {
  const { withMasterKey = false, full = false, keep } = options;
  const { config } = await readServerSettings(command);
  // Loaded here so that the other commands start without loading the server.
  const { databaseFile, openUnmigratedStore } = await import('../../store/open.ts');
  const { openFilesystemBlobs } = await import('../../blobs/filesystem.ts');
  const { registryDirectory } = await import('../../oci/registry-directory.ts');
  const { createBackup } = await import('../../backup/create.ts');
  const { requireOutside } = await import('../../backup/require-outside.ts');
  const { pruneBackups } = await import('../../backup/prune.ts');
  const { newRunId } = await import('../../backup/runs.ts');
  // Opening would create the database, and a wrong path would go unnoticed.
  const expected = config.databaseUrl === undefined ? databaseFile(config.data) : registryDirectory(config.data);
  if (!existsSync(expected)) {
    throw new Error(`${expected} does not exist: start the server once, or give its data directory with --data`);
  }
  requireOutside(location, config.data);
  const terminal = terminalOf(command);
  protectData(config.data, terminal);
  const progress = startProgress(terminal);
  const { manifest, pruned } = await withTarget(location, async (target, id) => {
    const store = await openUnmigratedStore({ dataDir: config.data, databaseUrl: config.databaseUrl });
    try {
      const blobs = await openFilesystemBlobs(registryDirectory(config.data));
      const manifest = await createBackup({
        ...{ target, id, store, blobs, withMasterKey, full, progress, clock: systemClock },
        dataDir: config.data,
        databaseUrl: config.databaseUrl,
        masterKey: config.masterKey,
      });
      const run = { target, id: newRunId(systemClock()), dryRun: false, clock: systemClock, progress };
      return { manifest, pruned: keep && (await pruneBackups({ ...run, keep })) };
    } finally {
      progress.end();
      await store.close();
    }
  });
  const { id, moment, masterKey, blobs, parts } = manifest;
  const result = { id, moment, masterKey, blobs, bytes: sizeOf(parts) + blobs.bytes, pruned };
  printResult(command, result, () => summaryText(manifest) + (pruned ? pruneText(pruned, false) : ''));
  if (!masterKey.included)
    terminal.err(`wharf: the master key${masterKey.id ? ` ${masterKey.id}` : ''} is ${masterKey.note}\n`);
  if (blobs.unavailable.length === 0) return;
  throw new CliError(
    ExitCode.damaged,
    `the backup ${id} is complete except for ${counted(blobs.unavailable.length, 'blob')} that the server itself has lost: ` +
      "push their images again ('wharf registry verify' names them)",
    blobs.unavailable.slice(0, 20).map(({ digest, problem }) => `${digest}: ${problem}`),
  );
}

const sizeOf = (parts: Manifest['parts']): number => parts.reduce((sum, { size }) => sum + size, 0);

function summaryText({ id, moment, parts, blobs }: Manifest): string {
  const copied = `${blobs.copied} of them new: ${formatBytes(blobs.copiedBytes)}`;
  return `created the backup ${id}: all changes before ${moment}
${formatBytes(sizeOf(parts))} of database, ${blobs.count} blobs with ${formatBytes(blobs.bytes)} (${copied})
`;
}
