/** The baseline of write benchmarks: inserts into one table of SQLite, each in a separate durable transaction. */
import { randomBytes } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';

process.on('message', ({ path, bytes, seconds }: { path: string; bytes: number; seconds: number }) => {
  const database = new DatabaseSync(path);
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
  database.exec('CREATE TABLE IF NOT EXISTS item (key TEXT PRIMARY KEY, value BLOB)');
  const insert = database.prepare('INSERT INTO item VALUES (?, ?)');
  const value = randomBytes(bytes);
  const started = performance.now();
  let rows = 0;
  while (performance.now() - started < seconds * 1000) {
    insert.run(randomBytes(20).toString('hex'), value);
    rows++;
  }
  const rate = rows / ((performance.now() - started) / 1000);
  database.close();
  process.send?.(rate);
});
