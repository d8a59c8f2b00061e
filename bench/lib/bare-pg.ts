/** The least that a PostgreSQL client can do: one prepared statement again and again, with as many at once as asked for. */
import pg from 'pg';

export interface BareStatement {
  readonly url: string;
  readonly text: string;
  /** Each run takes the next of them. */
  readonly values: readonly (readonly (string | number | Uint8Array)[])[];
  readonly atOnce: number;
  readonly seconds: number;
}

let pool: pg.Pool | undefined;

process.on('message', async ({ url, text, values, atOnce, seconds }: BareStatement) => {
  pool ??= new pg.Pool({ connectionString: url, max: 10 });
  const connections = pool;
  const until = performance.now() + seconds * 1000;
  let runs = 0;
  const repeat = async (): Promise<void> => {
    while (performance.now() < until) {
      const own = values[runs++ % values.length] ?? [];
      // Whatever stands for something new becomes new.
      const filled = own.map((value) => (value === '$new' ? `${process.hrtime.bigint()}-${runs}` : value));
      await connections.query({ name: 'bare', text, values: filled });
    }
  };
  await Promise.all(Array.from({ length: atOnce }, repeat));
  process.send?.(runs / seconds);
});
