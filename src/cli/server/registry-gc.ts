import { type Command, Option } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { durationParser } from '../../config-values.ts';
import type { CollectedGarbage } from '../../oci/gc/gc.ts';
import { addExamples } from '../help.ts';
import { optionParser } from '../option-value.ts';
import { terminalOf } from '../output/terminal.ts';
import { jsonText } from '../output/text.ts';
import type { Output } from '../settings/config-file.ts';
import { addStorageOptions, formatBytes, withStorage } from './registry-command.ts';

interface Options {
  readonly grace: number;
  readonly dryRun?: boolean;
  readonly output?: Output;
}

// With a shorter grace period, a running push could lose blobs that the server reported as existing.
const MIN_GRACE = '1h';

/** Adds the garbage collection. It opens the database and the blobs directly, also while the server runs. */
export function addGc(registry: Command): void {
  const command = addStorageOptions(
    registry
      .command('gc')
      .description('remove unused blobs, uploads and referrers; the server can be running')
      .option('--dry-run', 'only print what would be removed')
      .addOption(
        new Option('--grace <time>', 'keep everything that was pushed within this time')
          .default(24 * 3_600_000, '24h')
          .argParser(optionParser(durationParser(MIN_GRACE, '3650d'))),
      ),
  );
  addExamples(command, 'wharf registry gc --dry-run', 'wharf registry gc --grace 7d --data /srv/wharf');
  command.action(({ grace, dryRun = false, output }: Options) =>
    withStorage(command, async ({ store, blobs }) => {
      const { collectGarbage } = await import('../../oci/gc/gc.ts');
      const collected = await collectGarbage({ store, blobs, now: systemClock(), graceMs: grace, dryRun });
      const { out, width } = terminalOf(command);
      out(output === 'json' ? jsonText({ dryRun, ...collected }, width !== undefined) : summaryText(collected, dryRun));
    }),
  );
}

function summaryText({ blobs, bytes, uploads, links, referrers }: CollectedGarbage, dryRun: boolean): string {
  const parts = [`${blobs} blobs`, `${uploads} uploads`, `${links} links`, `${referrers} referrers`];
  return `${dryRun ? 'would remove' : 'removed'} ${parts.join(', ')}: ${formatBytes(bytes)}\n`;
}
