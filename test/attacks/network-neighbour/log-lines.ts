import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { mintOwnerToken, readOwner } from '../../../src/identity/owner/owner-key.ts';
import { findDatabase } from '../../support/databases.ts';
import { pollUntil } from '../../support/poll-until.ts';
import { spawnServer } from '../../support/process.ts';

/** A line with a short stack fits. Many log collectors cut or drop longer lines. */
const MAX_LINE = 3_000;

/** A value that is only in a row of the database, as the digest of a token or a sealed secret is. */
const STORED = 'value-that-only-the-database-has';

/** SQL, the parts of a PostgreSQL client, and stored values. */
const LEAKS = /SELECT |INSERT INTO|UPDATE |_queryQueue|connectionParameters|"client"|"detail"|"where"/;

test('log lines about a failing database contain neither SQL nor rows nor the client of PostgreSQL', async (t) => {
  const location = await findDatabase('PostgreSQL').createDataLocation();
  const server = await spawnServer(location);
  const admin = new pg.Client(location.databaseUrl);
  const locker = new pg.Client(location.databaseUrl);
  await admin.connect();
  t.after(async () => {
    await admin.end();
    await locker.end();
    await server.kill();
    await location.remove();
  });
  const token = await mintOwnerToken(location.dataDir);
  const organization = (await readOwner(location.dataDir))?.organization;
  const createGroup = async (name: string): Promise<number> => {
    const response = await fetch(`${server.url}/iam/v2/groups/${organization}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name }),
    });
    await response.text();
    return response.status;
  };
  const backends = `FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`;
  assert.equal(await createGroup('first'), 200);

  // The connections break while they are idle.
  await admin.query(`SELECT pg_terminate_backend(pid) ${backends}`);
  await pollUntil(
    async () => server.log.filter((line) => line.includes('lost a connection')).length,
    (count) => count > 0,
  );

  // A statement is cancelled while it waits, as a statement timeout does.
  await locker.connect();
  await locker.query('BEGIN; LOCK TABLE resource IN ACCESS EXCLUSIVE MODE');
  const cancelled = createGroup('second');
  await pollUntil(
    async () => (await admin.query(`SELECT pg_cancel_backend(pid) ${backends} AND wait_event_type = 'Lock'`)).rowCount,
    (count) => count !== null && count > 0,
  );
  await locker.query('COMMIT');
  assert.equal(await cancelled, 503);

  // A statement fails in a way that the server does not expect. PostgreSQL adds the values of the row to the error.
  await admin.query(`ALTER TABLE resource ADD COLUMN added text NOT NULL DEFAULT '${STORED}';
    ALTER TABLE resource ADD CONSTRAINT always_violated CHECK (added = '') NOT VALID`);
  assert.equal(await createGroup('third'), 500);

  // The request is logged with the failure.
  await pollUntil(
    async () => server.log.filter((line) => line.includes('"call failed"')).length,
    (count) => count >= 1,
  );
  for (const line of server.log) {
    assert.ok(line.length <= MAX_LINE, `${line.length} characters: ${line}`);
    assert.doesNotMatch(line, LEAKS);
    assert.ok(!line.includes(STORED), line);
  }
  const failure = server.log.find((line) => line.includes('"call failed"')) ?? assert.fail();
  assert.equal(JSON.parse(failure).error.code, '23514', 'the SQLSTATE code tells an operator what happened');
});
