import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { wharf } from '../../src/cli/cli.testing.ts';
import { type DataLocation, findDatabase } from '../support/databases.ts';
import { pollUntil } from '../support/poll-until.ts';
import { type ServerProcess, spawnServer } from '../support/process.ts';

/** Returns the record of a server. It is written just after the log line by which a test knows that the server runs. */
async function recordOf({ dataDir }: DataLocation, { url }: ServerProcess): Promise<Record<string, unknown>> {
  const path = join(dataDir, 'server.json');
  return pollUntil(
    async () => (existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>) : {}),
    (record) => record.url === url,
  );
}

const ping = async ({ url }: ServerProcess): Promise<number> => (await fetch(`${url}/ping/v2/ping`)).status;

describe('a second server', { timeout: 120_000 }, () => {
  for (const workers of ['1', '2']) {
    test(`on one SQLite directory is refused, with ${workers} workers, until the first has ended in any way`, async (t) => {
      const location = await findDatabase('SQLite').createDataLocation();
      t.after(() => location.remove());
      const first = await spawnServer(location, { WHARF_WORKERS: workers });
      t.after(() => first.kill());
      const { started, ...record } = await recordOf(location, first);
      assert.deepEqual(record, { url: first.url, localUrl: first.url, pid: first.process.pid });
      assert.ok(Math.abs(Date.parse(String(started)) - Date.now()) < 60_000);
      for (const name of ['server.json', 'server.lock']) {
        assert.equal(statSync(join(location.dataDir, name)).mode & 0o777, 0o600, name);
      }

      const refused = await wharf(['serve', '--listen', '127.0.0.1:0', '--data', location.dataDir]);
      assert.equal(refused.code, 1);
      const { pid } = first.process;
      const expected = `wharf: cannot start: another server is running on the data directory ${location.dataDir} (process ${pid}, ${first.url}): stop it, or `;
      assert.ok(refused.stderr.startsWith(expected), refused.stderr);
      assert.equal(refused.stdout, '');

      // Commands of the host work beside it, and the refused start has not disturbed it.
      assert.equal((await wharf(['keys', 'list', '--data', location.dataDir])).code, 0);
      assert.equal(await ping(first), 200);

      await first.kill();
      const second = await spawnServer(location);
      t.after(() => second.kill());
      await recordOf(location, second);
      assert.equal(await ping(second), 200);
      assert.equal(await second.stop(), 0);
      assert.equal(existsSync(join(location.dataDir, 'server.json')), false);
    });
  }
});
