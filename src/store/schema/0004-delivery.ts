import type { Migration } from '../migrations.ts';

/** The way of events from the outbox to those who subscribed. */
export const delivery: Migration = {
  id: 4,
  name: 'delivery',
  up: ({ text, integer, generatedId, table }) => [
    // Without it an event still waits to be handed to its subscriptions; then it says when the event may be forgotten.
    `ALTER TABLE outbox ADD COLUMN expires ${integer}`,
    'CREATE INDEX outbox_waiting ON outbox (id) WHERE expires IS NULL',
    'CREATE INDEX outbox_by_expiry ON outbox (expires) WHERE expires IS NOT NULL',
    // Whoever holds this row hands out events: one server at a time, so that their order stays.
    "INSERT INTO setting (key, value) VALUES ('delivery.turn', '')",

    // One row for each subscription: from which event on it hears, when there is next something to send, and how it fares.
    // While a server works on it, `lease` names that work, and `due` is when others may take it over.
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
    ) ${table}`,
    'CREATE INDEX sink_by_parent ON sink (parent)',
    'CREATE INDEX sink_by_due ON sink (due) WHERE due IS NOT NULL',

    // An event on its way to a subscription, and afterwards the record of it. `due` is there while it is pending.
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
    ) ${table}`,
    'CREATE INDEX delivery_by_subscription ON delivery (subscription, id)',
    'CREATE INDEX delivery_by_state ON delivery (state, subscription, id)',
    'CREATE INDEX delivery_by_subject ON delivery (subscription, subject, id) WHERE due IS NOT NULL',
  ],
};
