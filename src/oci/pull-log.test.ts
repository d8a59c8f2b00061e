import assert from 'node:assert/strict';
import { test } from 'node:test';
import { databases, temporaryStore } from '../../test/support/databases.ts';
import { pollUntil } from '../../test/support/poll-until.ts';
import type { Log } from '../base/log.ts';
import type { OutboxEvent } from '../store/outbox.ts';
import type { Store } from '../store/store.ts';
import { createPullLog } from './pull-log.ts';

const event = (id: number): OutboxEvent => ({
  id: `event ${id}`,
  type: 'pulled',
  subject: 'repo',
  scope: 'group',
  time: 1,
  audience: 'customer',
  extensions: {},
  body: { json: '{}' },
});

function watch() {
  const warnings: string[] = [];
  const ignore = () => {};
  const log: Log = { debug: ignore, info: ignore, error: ignore, warn: (_, message) => warnings.push(message) };
  const dropped: number[] = [];
  return { log, warnings, dropped, metrics: { countDroppedPullEvents: (count: number) => void dropped.push(count) } };
}

async function idsIn(store: Store): Promise<string[]> {
  const rows = await store.reader.all<{ event_id: string }>('SELECT event_id FROM outbox ORDER BY id');
  return rows.map((row) => row.event_id);
}

for (const database of databases) {
  test(`events are written in order, many per transaction, on ${database.name}`, async (t) => {
    const real = await temporaryStore(database);
    t.after(() => real.close());
    let writes = 0;
    const store: Store = {
      ...real,
      write(work) {
        writes++;
        return real.write(work);
      },
    };
    const { log, metrics, dropped } = watch();
    const pulls = createPullLog({ store, log, metrics, batchMs: 1 });
    for (let id = 0; id < 1000; id++) pulls.record(event(id));
    const ids = await pollUntil(
      () => idsIn(store),
      ({ length }) => length === 1000,
    );
    assert.deepEqual(
      ids,
      Array.from({ length: 1000 }, (_, id) => `event ${id}`),
    );
    assert.ok(writes <= 10, `${writes} transactions`);
    assert.deepEqual(dropped, []);
  });
}

test('closing writes the waiting events immediately', async (t) => {
  const [database] = databases;
  assert.ok(database);
  const store = await temporaryStore(database);
  t.after(() => store.close());
  const pulls = createPullLog({ store, ...watch(), batchMs: 3_600_000 });
  pulls.record(event(1));
  await pulls.close();
  assert.deepEqual(await idsIn(store), ['event 1']);
});

test('events wait while the database is unavailable, and those beyond the capacity are counted', async (t) => {
  const [database] = databases;
  assert.ok(database);
  const real = await temporaryStore(database);
  t.after(() => real.close());
  let isAway = true;
  const store: Store = {
    ...real,
    write: (work) => (isAway ? Promise.reject(new Error('away')) : real.write(work)),
  };
  const { log, metrics, warnings, dropped } = watch();
  const pulls = createPullLog({ store, log, metrics, batchMs: 1, retryMs: 1, capacity: 3 });
  for (let id = 0; id < 5; id++) pulls.record(event(id));
  assert.deepEqual(dropped, [1, 1]);
  await pollUntil(
    async () => warnings,
    (found) => found.some((line) => /cannot write/.test(line)),
  );
  isAway = false;
  await pollUntil(
    () => idsIn(store),
    ({ length }) => length === 3,
  );
  assert.ok(warnings.some((line) => /were dropped/.test(line)));
});

test('close drops the events and succeeds when the database is unavailable', async (t) => {
  const [database] = databases;
  assert.ok(database);
  const real = await temporaryStore(database);
  t.after(() => real.close());
  const store: Store = { ...real, write: () => Promise.reject(new Error('away')) };
  const { dropped, ...rest } = watch();
  const pulls = createPullLog({ store, ...rest, batchMs: 1 });
  pulls.record(event(1));
  await pulls.close();
  assert.deepEqual(dropped, [1]);
});
