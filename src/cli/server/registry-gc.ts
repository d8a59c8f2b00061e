import { existsSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { flagOf, loadConfig, type Setting, settings } from '../../config.ts';
import { duration } from '../../config-values.ts';
import type { Collected } from '../../oci/gc/gc.ts';
import { checked } from '../context.ts';
import { example } from '../help.ts';
import { terminalOf } from '../output/terminal.ts';
import { jsonText } from '../output/text.ts';
import { type Output, outputs } from '../settings/config-file.ts';

interface Options {
  readonly data?: string;
  readonly databaseUrl?: string;
  readonly grace: number;
  readonly dryRun?: boolean;
  readonly output?: Output;
}

// Shorter, a push that is under way could lose what it was told to be there.
const SHORTEST_GRACE = '1h';

/** Works on the database and the blobs themselves, beside the server that runs on them. */
export function addGc(registry: Command): void {
  const command = registry
    .command('gc')
    .description('remove blobs, uploads and referrers that nothing needs, while the server runs')
    .option('--dry-run', 'only say what would go')
    .addOption(
      new Option('--grace <time>', 'leave alone what was pushed within this time')
        .default(24 * 3_600_000, '24h')
        .argParser(checked(duration(SHORTEST_GRACE, '3650d'))),
    )
    .addOption(new Option('-o, --output <format>', 'how to print (default: "table")').choices(outputs));
  for (const setting of [settings.data, settings.databaseUrl] as Setting[]) {
    command.option(`${flagOf(setting)} <${setting.value}>`, `${setting.meaning} (env: ${setting.variable})`);
  }
  example(command, 'wharf registry gc --dry-run', 'wharf registry gc --grace 7d --data /srv/wharf');
  command.action(async ({ data, databaseUrl, grace, dryRun = false, output }: Options) => {
    const config = loadConfig({ data, databaseUrl }, process.env);
    // Loaded here, so that the other commands start without the server's weight.
    const { openStore } = await import('../../store/open.ts');
    const { openFilesystemBlobs } = await import('../../blobs/filesystem.ts');
    const { collectGarbage } = await import('../../oci/gc/gc.ts');
    const { registryDirectory } = await import('../../oci/registry.ts');
    const directory = registryDirectory(config.data);
    if (!existsSync(directory)) {
      throw new Error(`no registry in ${config.data}: start the server once, or name its directory with --data`);
    }
    const store = await openStore({ dataDir: config.data, databaseUrl: config.databaseUrl });
    try {
      const blobs = await openFilesystemBlobs(directory);
      const collected = await collectGarbage({ store, blobs, now: systemClock(), graceMs: grace, dryRun });
      const { out, width } = terminalOf(command);
      out(output === 'json' ? jsonText({ dryRun, ...collected }, width !== undefined) : sentence(collected, dryRun));
    } finally {
      await store.close();
    }
  });
}

function sentence({ blobs, bytes, uploads, links, referrers }: Collected, dryRun: boolean): string {
  const parts = [`${blobs} blobs`, `${uploads} uploads`, `${links} links`, `${referrers} referrers`];
  return `${dryRun ? 'would remove' : 'removed'} ${parts.join(', ')}: ${inUnits(bytes)}\n`;
}

function inUnits(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return `${power === 0 ? bytes : (bytes / 1024 ** power).toFixed(1)} ${units[power]}`;
}
