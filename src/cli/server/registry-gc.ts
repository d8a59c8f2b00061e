import { existsSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { durationParser } from '../../config-values.ts';
import type { CollectedGarbage } from '../../oci/gc/gc.ts';
import { addExamples } from '../help.ts';
import { optionParser } from '../option-value.ts';
import { terminalOf } from '../output/terminal.ts';
import { jsonText } from '../output/text.ts';
import { type Output, outputs } from '../settings/config-file.ts';
import { protectData } from './protect-data.ts';
import { addSettingOptions, readServerSettings } from './setting-options.ts';

interface Options {
  readonly grace: number;
  readonly dryRun?: boolean;
  readonly output?: Output;
}

// With a shorter grace period, a running push could lose blobs that the server reported as existing.
const MIN_GRACE = '1h';

/** Adds the garbage collection. It opens the database and the blobs directly, also while the server runs. */
export function addGc(registry: Command): void {
  const command = registry
    .command('gc')
    .description('remove unused blobs, uploads and referrers; the server can be running')
    .option('--dry-run', 'only print what would be removed')
    .addOption(
      new Option('--grace <time>', 'keep everything that was pushed within this time')
        .default(24 * 3_600_000, '24h')
        .argParser(optionParser(durationParser(MIN_GRACE, '3650d'))),
    )
    .addOption(new Option('-o, --output <format>', 'the output format (default: "table")').choices(outputs));
  addSettingOptions(command, ['data', 'databaseUrl']);
  addExamples(command, 'wharf registry gc --dry-run', 'wharf registry gc --grace 7d --data /srv/wharf');
  command.action(async ({ grace, dryRun = false, output }: Options) => {
    const { config } = await readServerSettings(command);
    // Loaded here so that the other commands start without loading the server.
    const { openStore } = await import('../../store/open.ts');
    const { openFilesystemBlobs } = await import('../../blobs/filesystem.ts');
    const { collectGarbage } = await import('../../oci/gc/gc.ts');
    const { registryDirectory } = await import('../../oci/registry.ts');
    const directory = registryDirectory(config.data);
    if (!existsSync(directory)) {
      throw new Error(`no registry in ${config.data}: start the server once, or give its data directory with --data`);
    }
    protectData(config.data, terminalOf(command));
    const store = await openStore({ dataDir: config.data, databaseUrl: config.databaseUrl });
    try {
      const blobs = await openFilesystemBlobs(directory);
      const collected = await collectGarbage({ store, blobs, now: systemClock(), graceMs: grace, dryRun });
      const { out, width } = terminalOf(command);
      out(output === 'json' ? jsonText({ dryRun, ...collected }, width !== undefined) : summaryText(collected, dryRun));
    } finally {
      await store.close();
    }
  });
}

function summaryText({ blobs, bytes, uploads, links, referrers }: CollectedGarbage, dryRun: boolean): string {
  const parts = [`${blobs} blobs`, `${uploads} uploads`, `${links} links`, `${referrers} referrers`];
  return `${dryRun ? 'would remove' : 'removed'} ${parts.join(', ')}: ${formatBytes(bytes)}\n`;
}

function formatBytes(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return `${power === 0 ? bytes : (bytes / 1024 ** power).toFixed(1)} ${units[power]}`;
}
