/** Run by sqlite.test.ts as a process that can write small files only. Prints what happened. */
import { openSqlite } from './sqlite.ts';

const store = await openSqlite(process.argv[2] ?? '');
const put = (key: string, size: number): Promise<number> =>
  store.write((tx) => tx.run('INSERT INTO item (key, body) VALUES ($1, $2)', key, new Uint8Array(size)));
await store.write((tx) => tx.run('CREATE TABLE item (key TEXT PRIMARY KEY, body BLOB) STRICT'));
await put('before', 10);
const refused = await put('huge', 1_000_000).catch((error: Error) => error.message);
await put('after', 10);
const rows = await store.reader.all('SELECT key FROM item ORDER BY key');
process.stdout.write(JSON.stringify({ refused, keys: rows.map(({ key }) => key) }));
