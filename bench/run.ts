/**
 * Every benchmark, one after the other: npm run bench [suite…]. Writes bench/results.json, and the table and the plot of
 * docs/PERFORMANCE.md. What disturbs the machine disturbs the baseline of the same minute too, so ratios hold. Data that is
 * missing is made first.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import { access } from './access.ts';
import { copyAll } from './copy.ts';
import { dataset } from './data.ts';
import { growth } from './growth.ts';
import { grpc } from './grpc.ts';
import { generators } from './lib/load.ts';
import { plot } from './lib/plot.ts';
import { describe, isMet, type Print, type Result, type Suite, short } from './lib/result.ts';
import { BIG, MIDDLE, SMALL } from './lib/sizes.ts';
import { memory } from './memory.ts';
import { postgres } from './postgres.ts';
import { rest } from './rest.ts';
import { scale } from './scale.ts';
import { startup } from './startup.ts';
import { workers } from './workers.ts';
import { writes } from './writes.ts';

const suites: Readonly<Record<string, Suite>> = {
  ...{ rest, grpc, writes, scale, access, postgres, workers, startup, memory },
};
/** Programs that print figures of their own. */
const others: Readonly<Record<string, readonly string[]>> = {
  blobs: ['64', '3'],
  registry: [],
  events: [],
  advisories: ['20000'],
};
/** One that hangs must not keep the rest from being written down. */
const PATIENCE_MS = 120_000;

const ROOT = join(import.meta.dirname, '..');
const RESULTS = join(import.meta.dirname, 'results.json');
const PAGE = join(ROOT, 'docs/PERFORMANCE.md');
const PLOT = join(ROOT, 'docs/growth.svg');
const print: Print = (line) => void process.stdout.write(`${line}\n`);

interface Report {
  readonly when: string;
  readonly machine: string;
  readonly load: string;
  readonly results: Readonly<Record<string, readonly Result[]>>;
}

const asked = process.argv.slice(2);
const isAsked = (name: string): boolean => asked.length === 0 || asked.includes(name);
const results: Record<string, readonly Result[]> =
  asked.length > 0 && existsSync(RESULTS) ? { ...before().results } : {};

for (const size of [SMALL, MIDDLE, BIG]) await dataset(size, print);
if (isAsked('postgres') || isAsked('workers')) await copyAll([SMALL, BIG], print);

const started = performance.now();
for (const [name, suite] of Object.entries(suites)) {
  if (!isAsked(name)) continue;
  await timed(name, async () => {
    const found = await suite(print);
    for (const result of found) print(`${isMet(result) ? '  ' : '! '}${describe(result)}`);
    results[name] = found;
  }).catch((error: unknown) => {
    // The others are worth having all the same.
    print(`! ${name} failed: ${error instanceof Error ? error.stack : error}`);
    process.exitCode = 1;
  });
}
for (const [name, args] of Object.entries(others)) {
  if (!isAsked(name)) continue;
  const program = join(import.meta.dirname, `${name}.ts`);
  await timed(name, () => {
    spawnSync(process.execPath, [program, ...args], { stdio: 'inherit', cwd: ROOT, timeout: PATIENCE_MS });
  });
}
if (isAsked('growth')) await timed('growth', async () => writeFileSync(PLOT, plot(await growth(print))));

const report: Report = {
  when: new Date().toISOString().slice(0, 10),
  machine: `${cpus().length} × ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.versions.node}, load by ${generators()}`,
  load: short(loadavg()[2] ?? 0),
  results,
};
writeFileSync(RESULTS, `${JSON.stringify(report, null, 2)}\n`);
writeTable(report);
print(`\ndone in ${Math.round((performance.now() - started) / 1000)} s`);

async function timed(name: string, work: () => Promise<void> | void): Promise<void> {
  const from = performance.now();
  print(`\n${name}`);
  await work();
  print(`  (${Math.round((performance.now() - from) / 1000)} s)`);
}

function before(): Report {
  return JSON.parse(readFileSync(RESULTS, 'utf8')) as Report;
}

function writeTable({ when, machine, load, results: all }: Report): void {
  const lines = Object.values(all)
    .flat()
    .map((result) => {
      const { benchmark, baseline = '', value, unit, bar, figures = '' } = result;
      const limit = bar === undefined ? '' : 'atLeast' in bar ? `at least ${bar.atLeast}` : `at most ${bar.atMost}`;
      const met = bar === undefined ? '' : isMet(result) ? 'yes' : 'no';
      return `| ${benchmark} | ${baseline} | ${short(value)} ${unit} | ${limit} | ${met} | ${figures} |`;
    });
  const table = [
    `Measured ${when} on ${machine}; load average of the last 15 minutes ${load}.`,
    '',
    '| benchmark | baseline in the same run | measured | bar | met | figures |',
    '|---|---|---|---|---|---|',
    ...lines,
  ].join('\n');
  const page = readFileSync(PAGE, 'utf8');
  const between = /(<!-- results -->)[\s\S]*?(<!-- end of results -->)/;
  writeFileSync(
    PAGE,
    page.replace(between, (_, begin: string, end: string) => `${begin}\n\n${table}\n\n${end}`),
  );
}
