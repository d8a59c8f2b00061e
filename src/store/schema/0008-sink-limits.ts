import type { Migration } from './migration.ts';

/** Whose access a subscription depends on, and how many requests its sink may get. */
export const sinkLimits: Migration = {
  id: 8,
  name: 'sink limits',
  summary: 'adds the limits of sinks',
  worksFrom: 8,
  up: ({ text, integer, tableOptions }) => [
    // - `maker`: the identity that created the subscription or took it over, as JSON; null for earlier subscriptions.
    // - `paused`: since when nothing is sent, because the maker has no access.
    // - `address`: the host of the URL; null until the first attempt, for earlier subscriptions.
    // - `accepted`: when the sink accepted a delivery for the first time.
    // - `handshake`: null unless one is required. Then when the sink permitted deliveries; 0 until it does.
    // - `allowed_rate`: the requests per minute that it permitted; null for no limit.
    `ALTER TABLE sink ADD COLUMN maker ${text}`,
    `ALTER TABLE sink ADD COLUMN paused ${integer}`,
    `ALTER TABLE sink ADD COLUMN address ${text}`,
    `ALTER TABLE sink ADD COLUMN accepted ${integer}`,
    `ALTER TABLE sink ADD COLUMN handshake ${integer}`,
    `ALTER TABLE sink ADD COLUMN allowed_rate ${integer}`,
    'CREATE INDEX sink_by_address ON sink (address)',
    `UPDATE sink SET accepted = (
      SELECT d.attempted FROM delivery d WHERE d.state = 'delivered' AND d.subscription = sink.subscription
      ORDER BY d.id LIMIT 1
    )`,

    // The requests that an organization has caused at an address. An empty address stands for all addresses that have
    // accepted nothing yet.
    // - `next`: when the requests so far are used up at the permitted rate.
    // - `failures`: how many attempts have failed in a row, while nothing was accepted.
    // - `accepted`: when the address accepted a delivery for the first time.
    `CREATE TABLE sink_address (
      organization ${text} NOT NULL,
      address ${text} NOT NULL,
      next ${integer} NOT NULL,
      failures ${integer} NOT NULL,
      accepted ${integer},
      PRIMARY KEY (organization, address)
    ) ${tableOptions}`,
  ],
};
