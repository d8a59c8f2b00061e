import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { databases, temporaryStore } from '../../test/support/databases.ts';
import { appendEvent, type OutboxEvent } from './outbox.ts';
import { type Store, UniqueViolation } from './store.ts';

const event: OutboxEvent = {
  id: 'e1',
  type: 'dev.example.created.v1',
  subject: 'root/child',
  scope: 'root',
  time: 1_700_000_000_123,
  audience: 'customer',
  extensions: { group: 'root' },
};

for (const database of databases) {
  describe(`outbox on ${database.name}`, () => {
    let store: Store;
    before(async () => {
      store = await temporaryStore(database);
    });
    after(() => store.close());

    it('stores events in order, each id once, and never reuses a row id', async () => {
      const full = { ...event, id: 'e2', actor: { subject: 'me' }, body: { type: 'x.Group', json: '{"name":"é"}' } };
      await store.write((tx) => appendEvent(tx, event));
      await store.write((tx) => appendEvent(tx, full));
      await assert.rejects(
        store.write((tx) => appendEvent(tx, event)),
        UniqueViolation,
      );
      const columns = 'event_id, type, subject, scope, time, audience, extensions, actor, body_type, body';
      const rows = await store.reader.all(`SELECT ${columns} FROM outbox ORDER BY id`);
      const { type, subject, scope, time, audience } = event;
      const same = { type, subject, scope, time, audience, extensions: '{"group":"root"}' };
      assert.deepEqual(
        rows.map((row) => ({ ...row })),
        [
          { ...same, event_id: 'e1', actor: null, body_type: null, body: null },
          { ...same, event_id: 'e2', actor: '{"subject":"me"}', body_type: 'x.Group', body: '{"name":"é"}' },
        ],
      );
      const newest = async () => (await store.reader.get('SELECT max(id) AS id FROM outbox'))?.id;
      const before = Number(await newest());
      await store.write((tx) => tx.run('DELETE FROM outbox'));
      await store.write((tx) => appendEvent(tx, event));
      assert.ok(Number(await newest()) > before);
    });
  });
}
