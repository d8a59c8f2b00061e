import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import pg from 'pg';
import { type FreshDatabase, freshDatabase } from '../../../test/support/postgres.ts';
import { copyIn, copyOut } from './copy.ts';

async function collect(source: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of source) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

describe('COPY', () => {
  let database: FreshDatabase;
  let client: pg.Client;
  before(async () => {
    database = await freshDatabase();
    client = new pg.Client(database.url);
    await client.connect();
    await client.query('CREATE TABLE item (id BIGINT PRIMARY KEY, content BYTEA, text TEXT)');
  });
  after(async () => {
    await client.end();
    await database.drop();
  });
  const isUsable = async () => assert.equal((await client.query('SELECT 1 AS one')).rows[0].one, 1);
  async function* chunks(...texts: string[]) {
    for (const text of texts) {
      await nextTurn();
      yield Buffer.from(text);
    }
  }

  it('writes and reads rows of any content, also more than the buffers hold', async () => {
    await client.query(`INSERT INTO item SELECT id, decode(repeat('00ff', 500), 'hex'), E'a\\tb\\n\\\\.\\nü' || id
      FROM generate_series(1, 5000) AS id`);
    const before = (await client.query('SELECT md5(string_agg(item::text, chr(10) ORDER BY id)) AS sum FROM item'))
      .rows;
    const text = await collect(copyOut(client, 'COPY item (id, content, text) TO STDOUT'));
    await client.query('DELETE FROM item');
    const half = Math.floor(text.length / 2);
    const count = await copyIn(
      client,
      'COPY item (id, content, text) FROM STDIN',
      chunks(text.slice(0, half), text.slice(half)),
    );
    assert.equal(count, 5000);
    const after = (await client.query('SELECT md5(string_agg(item::text, chr(10) ORDER BY id)) AS sum FROM item')).rows;
    assert.deepEqual(after, before);
    await client.query('DELETE FROM item');
  });

  it('copies an empty table', async () => {
    assert.equal(await collect(copyOut(client, 'COPY item TO STDOUT')), '');
    assert.equal(await copyIn(client, 'COPY item FROM STDIN', chunks()), 0);
    await isUsable();
  });

  it('rejects with the error of the source, and the connection stays usable', async () => {
    async function* failing() {
      yield Buffer.from('1\t\\\\x00\ta\n');
      await nextTurn();
      throw new Error('the source failed');
    }
    await assert.rejects(copyIn(client, 'COPY item FROM STDIN', failing()), /the source failed/);
    await isUsable();
  });

  it('rejects with the error of the database, and the connection stays usable', async () => {
    await assert.rejects(copyIn(client, 'COPY item FROM STDIN', chunks('1\t', 'not a row\n', '2\n')), pg.DatabaseError);
    await isUsable();
    await assert.rejects(copyIn(client, 'COPY missing FROM STDIN', chunks('1\n')), /missing/);
    await isUsable();
    await assert.rejects(collect(copyOut(client, 'COPY missing TO STDOUT')), /missing/);
    await isUsable();
  });
});
