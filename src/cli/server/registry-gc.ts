import { type Command, Option } from 'commander';
import { systemClock } from '../../base/clock.ts';
import type { Blobs } from '../../blobs/blobs.ts';
import { durationParser } from '../../config-values.ts';
import type { CollectedGarbage } from '../../oci/gc/gc.ts';
import { CliError, ExitCode } from '../exit-codes.ts';
import { addExamples } from '../help.ts';
import { optionParser } from '../option-value.ts';
import { formatBytes } from '../output/bytes.ts';
import { terminalOf } from '../output/terminal.ts';
import { jsonText } from '../output/text.ts';
import type { Output } from '../settings/config-file.ts';
import { addStorageOptions, withStorage } from './registry-command.ts';
import { readServerSettings } from './setting-options.ts';

interface Options {
  readonly grace: number;
  readonly dryRun?: boolean;
  readonly output?: Output;
}

/** With a shorter grace period, a running push can lose blobs that the server reported as existing. It then fails. */
const SAFE_GRACE_MS = 3_600_000;
/** A client that sends nothing for this long has abandoned its upload. */
const ACTIVE_UPLOAD_MS = 5 * 60_000;

/** Adds the garbage collection. It opens the database and the blobs directly, also while the server runs. */
export function addGc(registry: Command): void {
  const command = addStorageOptions(
    registry
      .command('gc')
      .description('remove unused blobs, uploads and referrers; the server can be running')
      .option('--dry-run', 'only print what would be removed')
      .addOption(
        new Option(
          '--grace <time>',
          'keep everything that was pushed within this time. With less than 1h, which frees a full disk at once, ' +
            'no upload may be active, and a client that is pushing may have to push again',
        )
          .default(24 * 3_600_000, '24h')
          .argParser(optionParser(durationParser('0s', '3650d'))),
      ),
  );
  addExamples(command, 'wharf registry gc --dry-run', 'wharf registry gc --grace 0s --data /srv/wharf');
  command.action(async ({ grace, dryRun = false, output }: Options) => {
    const { createDiskReserve, freeDiskReserve, isDiskFull } = await import('../../store/disk-reserve.ts');
    const terminal = terminalOf(command);
    const collect = () =>
      withStorage(command, async ({ store, blobs, config }) => {
        const { collectGarbage } = await import('../../oci/gc/gc.ts');
        const now = systemClock();
        if (grace < SAFE_GRACE_MS && !dryRun) await refuseActiveUploads(blobs, now);
        const { out, width } = terminal;
        const collected = await collectGarbage({ store, blobs, now, graceMs: grace, dryRun });
        if (config.databaseUrl === undefined && !dryRun) await createDiskReserve(config.data);
        out(
          output === 'json' ? jsonText({ dryRun, ...collected }, width !== undefined) : summaryText(collected, dryRun),
        );
      });
    try {
      await collect();
    } catch (error) {
      // SQLite needs space even to open the database, and reports a lack of it in several ways.
      const { data: dataDir } = (await readServerSettings(command)).config;
      if (!(await isDiskFull(dataDir)) || !(await freeDiskReserve(dataDir))) throw error;
      terminal.err('wharf: the disk is full; using the reserve\n');
      await collect();
    }
  });
}

async function refuseActiveUploads(blobs: Blobs, now: number): Promise<void> {
  let active = 0;
  for await (const { changed } of blobs.uploads()) if (changed > now - ACTIVE_UPLOAD_MS) active++;
  if (active === 0) return;
  throw new CliError(
    ExitCode.precondition,
    `${active} uploads were active in the last 5 minutes: wait until they have ended, or use --grace 1h`,
  );
}

function summaryText({ blobs, bytes, uploads, links, referrers }: CollectedGarbage, dryRun: boolean): string {
  const parts = [`${blobs} blobs`, `${uploads} uploads`, `${links} links`, `${referrers} referrers`];
  return `${dryRun ? 'would remove' : 'removed'} ${parts.join(', ')}: ${formatBytes(bytes)}\n`;
}
