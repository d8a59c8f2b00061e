import type { Migration } from './migration.ts';

/** The delivery of events from the outbox to the sinks of subscriptions. */
export const delivery: Migration = {
  id: 4,
  name: 'delivery',
  summary: 'creates the tables of deliveries',
  worksFrom: 4,
  up: ({ text, integer, generatedId, tableOptions }) => [
    // Null until deliveries were created for the event. Then the time after which the event is deleted.
    `ALTER TABLE outbox ADD COLUMN expires ${integer}`,
    'CREATE INDEX outbox_waiting ON outbox (id) WHERE expires IS NULL',
    'CREATE INDEX outbox_by_expiry ON outbox (expires) WHERE expires IS NOT NULL',
    // The server that locks this row creates deliveries. One server at a time does so, to keep the order of events.
    "INSERT INTO setting (key, value) VALUES ('delivery.turn', '')",

    // One row per subscription.
    // - `since`: the last event that it does not receive.
    // - `due`: when a delivery is due next. While a server has the lease, the time when the lease expires.
    // - `lease`: names the lease of the server that delivers now.
    // - `rest`: the time before which nothing is sent, because of a backoff or a Retry-After; 0 if there is none.
    `CREATE TABLE sink (
      subscription ${text} NOT NULL PRIMARY KEY,
      parent ${text} NOT NULL,
      since ${integer} NOT NULL,
      due ${integer},
      lease ${text},
      rest ${integer} NOT NULL,
      failures ${integer} NOT NULL,
      failing_since ${integer},
      disabled ${integer},
      reason ${text}
    ) ${tableOptions}`,
    'CREATE INDEX sink_by_parent ON sink (parent)',
    'CREATE INDEX sink_by_due ON sink (due) WHERE due IS NOT NULL',

    // The delivery of an event to a subscription, kept as a record when it is done. `due` is null unless it is pending.
    `CREATE TABLE delivery (
      id ${generatedId},
      subscription ${text} NOT NULL,
      event ${integer} NOT NULL,
      subject ${text} NOT NULL,
      queued ${integer} NOT NULL,
      state ${text} NOT NULL,
      attempts ${integer} NOT NULL,
      due ${integer},
      attempted ${integer},
      duration ${integer},
      status ${integer},
      error ${text}
    ) ${tableOptions}`,
    'CREATE INDEX delivery_by_subscription ON delivery (subscription, id)',
    'CREATE INDEX delivery_by_state ON delivery (state, subscription, id)',
    'CREATE INDEX delivery_by_subject ON delivery (subscription, subject, id) WHERE due IS NOT NULL',
  ],
};
