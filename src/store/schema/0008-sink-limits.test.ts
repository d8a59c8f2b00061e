import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { databases } from '../../../test/support/databases.ts';
import { postgresDialect, sqliteDialect } from '../dialect.ts';
import { migrate, migrations } from '../migrations.ts';
import { openPostgres } from '../postgres/postgres.ts';
import { openSqlite } from '../sqlite/sqlite.ts';

for (const database of databases) {
  test(`sinks that have accepted deliveries before stay known on ${database.name}`, async () => {
    const home = await database.createDataLocation();
    const { databaseUrl } = home;
    const store = await (databaseUrl ? openPostgres(databaseUrl) : openSqlite(join(home.dataDir, 'wharfinger.db')));
    const dialect = databaseUrl ? postgresDialect : sqliteDialect;
    try {
      await migrate(
        store,
        dialect,
        migrations.filter(({ id }) => id < 8),
      );
      await store.write(async (tx) => {
        const sink = "INSERT INTO sink (subscription, parent, since, rest, failures) VALUES ($1, 'g', 0, 0, 0)";
        for (const uid of ['accepting', 'failing']) await tx.run(sink, uid);
        const delivery = `INSERT INTO delivery (subscription, event, subject, queued, state, attempts, attempted)
          VALUES ($1, 1, 's', 1, $2, 1, $3)`;
        await tx.run(delivery, 'accepting', 'failed', 5);
        await tx.run(delivery, 'accepting', 'delivered', 7);
        await tx.run(delivery, 'accepting', 'delivered', 9);
        await tx.run(delivery, 'failing', 'failed', 5);
      });
      await migrate(store, dialect);
      const rows = await store.reader.all('SELECT subscription, accepted, maker FROM sink ORDER BY subscription');
      assert.deepEqual(
        rows.map((row) => ({ ...row })),
        [
          { subscription: 'accepting', accepted: 7, maker: null },
          { subscription: 'failing', accepted: null, maker: null },
        ],
      );
    } finally {
      await store.close();
      await home.remove();
    }
  });
}
