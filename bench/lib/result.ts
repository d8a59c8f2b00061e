/** One line of the table of results. */
export interface Result {
  readonly benchmark: string;
  /** What it is a ratio of, or nothing when the value stands for itself. */
  readonly baseline?: string;
  readonly value: number;
  readonly unit: string;
  readonly bar?: { readonly atLeast: number } | { readonly atMost: number };
  /** The absolute figures behind a ratio, as of this machine in this minute. */
  readonly figures?: string;
}

export type Print = (line: string) => void;

/** Measures something and answers what the table shall say about it. */
export type Suite = (print: Print) => Promise<Result[]>;

/** Nothing to meet counts as met. */
export function isMet({ value, bar }: Result): boolean {
  if (bar === undefined) return true;
  return 'atLeast' in bar ? value >= bar.atLeast : value <= bar.atMost;
}

export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
};

/** Three digits that matter. */
export const short = (value: number): string =>
  Math.abs(value) >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));

export const describe = ({ benchmark, baseline, value, unit, bar, figures }: Result): string => {
  const against = baseline === undefined ? '' : ` of ${baseline}`;
  const limit =
    bar === undefined ? '' : 'atLeast' in bar ? ` (bar: at least ${bar.atLeast})` : ` (bar: at most ${bar.atMost})`;
  return `${benchmark}: ${short(value)} ${unit}${against}${limit}${figures ? `; ${figures}` : ''}`;
};

/** Runs one suite by itself. */
export async function runAlone(suite: Suite): Promise<void> {
  const print: Print = (line) => void process.stdout.write(`${line}\n`);
  for (const result of await suite(print)) print(`${isMet(result) ? '  ' : '! '}${describe(result)}`);
}
