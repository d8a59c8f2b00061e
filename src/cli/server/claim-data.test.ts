import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLog } from '../../../test/support/server.ts';
import { loadConfig } from '../../config.ts';
import { temporaryDirectory } from '../cli.testing.ts';
import { claimData, readRecord } from './claim-data.ts';

const urls = { url: 'https://wharf.example.com', localUrl: 'http://127.0.0.1:8080' };

test('servers on PostgreSQL can share a data directory, and each removes only its own record', async (t) => {
  const data = temporaryDirectory(t);
  const config = loadConfig({ data, databaseUrl: 'postgres://db/wharf' }, {});
  const first = await claimData(config, silentLog);
  const second = await claimData(config, silentLog);
  first.record(urls);
  assert.deepEqual({ ...readRecord(data), started: '' }, { ...urls, pid: process.pid, started: '' });
  writeFileSync(join(data, 'server.json'), JSON.stringify({ ...readRecord(data), pid: process.pid + 1 }));
  second.release();
  assert.equal(readRecord(data)?.pid, process.pid + 1);
  second.record(urls);
  second.release();
  assert.equal(existsSync(join(data, 'server.json')), false);
});

test('a damaged record is ignored', async (t) => {
  const data = temporaryDirectory(t);
  const claim = await claimData(loadConfig({ data }, {}), silentLog);
  for (const text of ['', '{', 'null', '{"url":1}']) {
    writeFileSync(join(data, 'server.json'), text);
    assert.equal(readRecord(data), undefined);
  }
  claim.release();
});
