import type { Command } from 'commander';
import { systemClock } from '../../base/clock.ts';
import type { Config } from '../../config.ts';
import type { Difference, Report } from '../../resource/check/difference.ts';
import type { Store } from '../../store/store.ts';
import { CliError, ExitCode } from '../exit-codes.ts';
import { addExamples } from '../help.ts';
import { startProgress } from '../imports/progress.ts';
import { tableText } from '../output/table.ts';
import { terminalOf } from '../output/terminal.ts';
import { jsonText } from '../output/text.ts';
import type { Output } from '../settings/config-file.ts';
import { addDatabaseOptions, readDatabaseCommand, withDatabase } from './database.ts';

interface Options {
  readonly repair?: true;
  readonly blobs: 'digest' | 'size' | 'skip';
}

/** Only so many differences are printed. All are counted. */
const MAX_PRINTED = 100;

interface CheckResult {
  readonly resources: number;
  readonly blobs: number;
  readonly differences: readonly Difference[];
  /** How many differences of each type there are, and how many of them were repaired. */
  readonly counts: Readonly<Record<string, { readonly found: number; readonly repaired: number }>>;
  /** The kinds whose listing index is being built, so that the new parts of it were not checked. */
  readonly unfinished: readonly string[];
}

/** Adds the command that compares everything that the database derives with what it is derived from. */
export function addDbCheck(db: Command): void {
  const command = addDatabaseOptions(
    db
      .command('check')
      .description(
        'recompute the listing index, counters, unique keys, references and storage, and compare; the server can be running',
      )
      .option('--repair', 'mend what can be derived, while the server is running'),
  );
  command.addOption(
    command
      .createOption('--blobs <how>', 'how to check the blobs of images: read all of them, compare sizes, or not at all')
      .choices(['digest', 'size', 'skip'])
      .default('digest'),
  );
  addExamples(command, 'wharf db check', 'wharf db check --repair', 'wharf db check --blobs size --data /srv/wharf');
  command.action(async (options: Options) => {
    const context = await readDatabaseCommand(command);
    const { out, width } = terminalOf(command);
    const result = await withDatabase(command, context, (store) => check(command, store, context.config, options));
    out(resultText(result, options, context.format, width));
    const left = Object.values(result.counts).reduce((sum, { found, repaired }) => sum + found - repaired, 0);
    if (left === 0) return;
    const isRepairable = result.differences.some((each) => each.isRepairable && !each.isRepaired);
    const advice = isRepairable ? ': run wharf db check --repair' : '';
    throw new CliError(ExitCode.failure, `the database has ${left} differences${advice}`);
  });
}

async function check(command: Command, store: Store, config: Config, options: Options): Promise<CheckResult> {
  const { resources } = await import('../../domains/domains.ts');
  const { checkIndex } = await import('../../resource/check/check-index.ts');
  const { checkKinds } = await import('../../resource/check/check-kinds.ts');
  const { recordCheck } = await import('../../resource/check/last-check.ts');
  const { missingParts } = await import('../../resource/index/index-parts.ts');
  const { checkRegistry } = await import('../../domains/registry/storage/check-registry.ts');
  const { checkBlobs } = await import('../../domains/registry/storage/check-blobs.ts');
  const isRepair = options.repair === true;
  const differences: Difference[] = [];
  const counts: Record<string, { found: number; repaired: number }> = {};
  const report: Report = (difference) => {
    const count = counts[difference.problem] ?? { found: 0, repaired: 0 };
    counts[difference.problem] = count;
    count.found++;
    if (difference.isRepaired) count.repaired++;
    if (differences.length < MAX_PRINTED) differences.push(difference);
  };
  const terminal = terminalOf(command);
  const total = (await store.reader.get<{ n: number }>('SELECT count(*) AS n FROM resource'))?.n;
  const read = { read: 0, total: Number(total ?? 0) };
  const progress = startProgress({ terminal, isQuiet: false, what: 'resources' }, read);
  let blobs = 0;
  await store.snapshot(async (snapshot) => {
    await checkKinds(snapshot, resources, report);
    await checkIndex(store, snapshot, resources, {
      report,
      isRepair,
      onProgress(n) {
        read.read += n;
        progress.update(read.read);
      },
    });
    await checkRegistry(store, snapshot, { report, isRepair });
    progress.end();
    if (options.blobs === 'skip') return;
    const storage = await openBlobs(config);
    const blobProgress = startProgress({ terminal, isQuiet: false, what: 'blobs' }, undefined);
    await checkBlobs(snapshot, store.reader, storage, {
      report,
      verifyContent: options.blobs === 'digest' ? storage.verifyContent : undefined,
      onProgress(n) {
        blobs += n;
        blobProgress.update(blobs);
      },
    });
    blobProgress.end();
  });
  const found = Object.values(counts).reduce((sum, count) => sum + count.found, 0);
  const repaired = Object.values(counts).reduce((sum, count) => sum + count.repaired, 0);
  await recordCheck(store, { at: systemClock(), resources: read.read, differences: found, repaired });
  const { listingIndexes } = store.reader;
  const unfinished = resources.filter((each) => missingParts(each, listingIndexes?.get(each.kind)));
  return { resources: read.read, blobs, differences, counts, unfinished: unfinished.map(({ kind }) => kind) };
}

async function openBlobs(config: Config) {
  const { openFilesystemBlobs } = await import('../../blobs/filesystem.ts');
  const { verifyBlob } = await import('../../blobs/verify.ts');
  const { registryDirectory } = await import('../../oci/registry-directory.ts');
  const blobs = await openFilesystemBlobs(registryDirectory(config.data));
  return {
    stat: blobs.stat,
    async verifyContent(digest: string): Promise<string | undefined> {
      const verified = await verifyBlob(blobs, { digest, size: 0, changed: 0 });
      if (!verified) return 'the file does not exist';
      if (verified.problem === 'unreadable') return 'the file cannot be read';
      return verified.problem && 'the content does not have this digest';
    },
  };
}

function resultText(
  { resources, blobs, differences, counts, unfinished }: CheckResult,
  { repair: isRepair, blobs: how }: Options,
  format: Output,
  width: number | undefined,
): string {
  if (format === 'json') {
    const found = Object.fromEntries(Object.entries(counts).map(([problem, count]) => [problem, { ...count }]));
    const printed = differences.map((each) => ({ ...each }));
    const result = { resources, blobs, counts: found, unfinished: [...unfinished], differences: printed };
    return jsonText(result, width !== undefined);
  }
  const lines: string[] = [];
  if (differences.length > 0) {
    const rows = differences.map((each) => [
      ...[each.uid, each.kind, each.isRepaired ? `${each.problem} (repaired)` : each.problem],
      each.advice === undefined ? each.description : `${each.description}; ${each.advice}`,
    ]);
    // Not cut: the description at the end says what is wrong.
    lines.push(tableText(['UID', 'KIND', 'PROBLEM', 'DESCRIPTION'], rows));
    const found = Object.values(counts).reduce((sum, count) => sum + count.found, 0);
    if (found > differences.length) lines.push(`${found - differences.length} more differences are not printed\n`);
    const summary = Object.entries(counts).map(([problem, count]) => {
      return [problem, String(count.found), ...(isRepair ? [String(count.repaired)] : [])];
    });
    lines.push(`\n${tableText(['PROBLEM', 'FOUND', ...(isRepair ? ['REPAIRED'] : [])], summary, width)}\n`);
  }
  for (const kind of unfinished) {
    lines.push(`the listing index of ${kind} is being built: its new parts were not checked\n`);
  }
  const checked = how === 'skip' ? `${resources} resources` : `${resources} resources and ${blobs} blobs`;
  lines.push(`checked ${checked}: ${differences.length === 0 ? 'no differences' : 'see above'}\n`);
  return lines.join('');
}
