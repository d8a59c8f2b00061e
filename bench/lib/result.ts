/** One row of the table of results. */
export interface BenchmarkResult {
  readonly benchmark: string;
  /** What the value is relative to. Undefined if the value is absolute. */
  readonly baseline?: string;
  readonly value: number;
  readonly unit: string;
  readonly limit?: { readonly atLeast: number } | { readonly atMost: number };
  /** The absolute figures of a ratio, which depend on the machine and its load. */
  readonly figures?: string;
}

export type Print = (line: string) => void;

/** Runs benchmarks and returns their rows of the table. */
export type Suite = (print: Print) => Promise<BenchmarkResult[]>;

/** Also true if there is no limit. */
export function isWithinLimit({ value, limit }: BenchmarkResult): boolean {
  if (limit === undefined) return true;
  return 'atLeast' in limit ? value >= limit.atLeast : value <= limit.atMost;
}

export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
};

/** Formats a number with three significant digits. */
export const formatFigure = (value: number): string =>
  Math.abs(value) >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));

/** Empty if there is no limit. */
export function formatLimit({ limit }: BenchmarkResult): string {
  if (limit === undefined) return '';
  return 'atLeast' in limit ? `at least ${limit.atLeast}` : `at most ${limit.atMost}`;
}

/** Formats a result as one line. Results outside of their limit are marked with an exclamation mark. */
export function formatResult(result: BenchmarkResult): string {
  const { benchmark, baseline, value, unit, limit, figures } = result;
  return [
    `${isWithinLimit(result) ? '  ' : '! '}${benchmark}: ${formatFigure(value)} ${unit}`,
    baseline === undefined ? '' : ` (baseline: ${baseline})`,
    limit === undefined ? '' : `; limit: ${formatLimit(result)}`,
    figures === undefined ? '' : `; ${figures}`,
  ].join('');
}

/** Runs a suite and prints its results. */
export async function runSuite(suite: Suite): Promise<void> {
  const print: Print = (line) => void process.stdout.write(`${line}\n`);
  for (const result of await suite(print)) print(formatResult(result));
}
