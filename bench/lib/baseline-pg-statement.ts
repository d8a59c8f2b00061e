/** The baseline of PostgreSQL benchmarks: one prepared statement, run repeatedly and concurrently by pg. */
import pg from 'pg';

export interface BaselineStatement {
  readonly url: string;
  readonly text: string;
  /** The parameters. Each run uses the next list of them. */
  readonly values: readonly (readonly (string | number | Uint8Array)[])[];
  readonly concurrency: number;
  readonly seconds: number;
}

let pool: pg.Pool | undefined;

process.on('message', async ({ url, text, values, concurrency, seconds }: BaselineStatement) => {
  pool ??= new pg.Pool({ connectionString: url, max: 10 });
  const connections = pool;
  const deadline = performance.now() + seconds * 1000;
  let runs = 0;
  const repeat = async (): Promise<void> => {
    while (performance.now() < deadline) {
      const parameters = values[runs++ % values.length] ?? [];
      // '$new' is a placeholder for a unique value.
      const filled = parameters.map((value) => (value === '$new' ? `${process.hrtime.bigint()}-${runs}` : value));
      await connections.query({ name: 'baseline', text, values: filled });
    }
  };
  await Promise.all(Array.from({ length: concurrency }, repeat));
  process.send?.(runs / seconds);
});
