/**
 * Runs all benchmarks, or the given suites: npm run bench [suite…]. Writes bench/results.json, and the table and the
 * plot of docs/PERFORMANCE.md. Missing datasets are created first.
 *
 * Each baseline is measured in the same run. Other load on the machine slows down both, so their ratio is more stable
 * than the figures.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import { access } from './access.ts';
import { attack } from './attack.ts';
import { ensureAllCopied } from './copy-to-postgres.ts';
import { ensureDataset } from './data.ts';
import { growth } from './growth.ts';
import { grpc } from './grpc.ts';
import { describeLoadGenerators } from './lib/load.ts';
import { plot } from './lib/plot.ts';
import {
  type BenchmarkResult,
  formatFigure,
  formatLimit,
  formatResult,
  isWithinLimit,
  type Print,
  type Suite,
} from './lib/result.ts';
import { LARGE, MEDIUM, SMALL } from './lib/sizes.ts';
import { memory } from './memory.ts';
import { postgres } from './postgres.ts';
import { rest } from './rest.ts';
import { scale } from './scale.ts';
import { startup } from './startup.ts';
import { tracing } from './tracing.ts';
import { workers } from './workers.ts';
import { writes } from './writes.ts';

const suites: Readonly<Record<string, Suite>> = {
  ...{ rest, grpc, writes, scale, access, postgres, workers, startup, memory, attack, tracing },
};
/** Programs that only print their figures, with their arguments. */
const printingPrograms: Readonly<Record<string, readonly string[]>> = {
  blobs: ['64', '3'],
  registry: [],
  events: [],
  advisories: ['20000'],
  rebuild: ['30000', '40'],
  backup: ['1024', '100000'],
};
/** A program that hangs is killed, so that the results of the others are written. */
const PROGRAM_TIMEOUT_MS = 120_000;

const ROOT = join(import.meta.dirname, '..');
const RESULTS = join(import.meta.dirname, 'results.json');
const DOCUMENT = join(ROOT, 'docs/PERFORMANCE.md');
const PLOT = join(ROOT, 'docs/growth.svg');
const print: Print = (line) => void process.stdout.write(`${line}\n`);

interface Report {
  readonly when: string;
  readonly machine: string;
  /** The load average of the last 15 minutes. */
  readonly load: string;
  readonly results: Readonly<Record<string, readonly BenchmarkResult[]>>;
}

const selected = process.argv.slice(2);
const isSelected = (name: string): boolean => selected.length === 0 || selected.includes(name);
const results: Record<string, readonly BenchmarkResult[]> =
  selected.length > 0 && existsSync(RESULTS) ? { ...previousReport().results } : {};

// A selected suite creates what it needs.
if (selected.length === 0) for (const size of [SMALL, MEDIUM, LARGE]) await ensureDataset(size, print);
if (isSelected('postgres') || isSelected('workers')) await ensureAllCopied([SMALL, LARGE], print);

const started = performance.now();
for (const [name, suite] of Object.entries(suites)) {
  if (!isSelected(name)) continue;
  await timed(name, async () => {
    const rows = await suite(print);
    for (const row of rows) print(formatResult(row));
    results[name] = rows;
  }).catch((error: unknown) => {
    // The results of the other suites are still written.
    print(`! ${name} failed: ${error instanceof Error ? error.stack : error}`);
    process.exitCode = 1;
  });
}
for (const [name, args] of Object.entries(printingPrograms)) {
  if (!isSelected(name)) continue;
  const program = join(import.meta.dirname, `${name}.ts`);
  await timed(name, () => {
    spawnSync(process.execPath, [program, ...args], { stdio: 'inherit', cwd: ROOT, timeout: PROGRAM_TIMEOUT_MS });
  });
}
if (isSelected('growth')) await timed('growth', async () => writeFileSync(PLOT, plot(await growth(print))));

const report: Report = {
  when: new Date().toISOString().slice(0, 10),
  machine: [
    `${cpus().length} × ${cpus()[0]?.model.trim()}`,
    `${Math.round(totalmem() / 2 ** 30)} GiB`,
    `Node ${process.versions.node}`,
    `load by ${describeLoadGenerators()}`,
  ].join(', '),
  load: formatFigure(loadavg()[2] ?? 0),
  results,
};
writeFileSync(RESULTS, `${JSON.stringify(report, null, 2)}\n`);
writeTable(report);
print(`\ndone in ${Math.round((performance.now() - started) / 1000)} s`);

async function timed(name: string, run: () => Promise<void> | void): Promise<void> {
  const from = performance.now();
  print(`\n${name}`);
  await run();
  print(`  (${Math.round((performance.now() - from) / 1000)} s)`);
}

function previousReport(): Report {
  return JSON.parse(readFileSync(RESULTS, 'utf8')) as Report;
}

function writeTable({ when, machine, load, results: bySuite }: Report): void {
  const lines = Object.values(bySuite)
    .flat()
    .map((result) => {
      const { benchmark, baseline = '', value, unit, limit, figures = '' } = result;
      const isMet = limit === undefined ? '' : isWithinLimit(result) ? 'yes' : 'no';
      const measured = `${formatFigure(value)} ${unit}`;
      return `| ${benchmark} | ${baseline} | ${measured} | ${formatLimit(result)} | ${isMet} | ${figures} |`;
    });
  const table = [
    `Measured ${when} on ${machine}. Load average of the last 15 minutes: ${load}.`,
    '',
    '| benchmark | baseline in the same run | measured | limit | met | figures |',
    '|---|---|---|---|---|---|',
    ...lines,
  ].join('\n');
  const text = readFileSync(DOCUMENT, 'utf8');
  const tableSection = /(<!-- results -->)[\s\S]*?(<!-- end of results -->)/;
  writeFileSync(
    DOCUMENT,
    text.replace(tableSection, (_, begin: string, end: string) => `${begin}\n\n${table}\n\n${end}`),
  );
}
