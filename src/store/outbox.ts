import type { BulkInsert } from './bulk-insert.ts';
import type { Transaction } from './store.ts';

/** An event of a change, in the words of CloudEvents. It is delivered if and only if its transaction commits. */
export interface OutboxEvent {
  /** Unique for ever; a receiver drops what it has seen. */
  readonly id: string;
  readonly type: string;
  /** The uid of what changed. */
  readonly subject: string;
  /** The extension attribute `group`: where a subscription must be to get the event. */
  readonly scope: string;
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly audience: 'customer' | 'internal';
  readonly extensions: Readonly<Record<string, string>>;
  /** Who made the change, as JSON. */
  readonly actor?: object | undefined;
  /** The changed resource as protobuf JSON, with the full name of its message; without one for what no message describes. */
  readonly body?: { readonly type?: string; readonly json: string } | undefined;
}

const EVENTS: BulkInsert = {
  into: 'outbox',
  columns: {
    ...{ event_id: 'text', type: 'text', subject: 'text', scope: 'text', time: 'integer', audience: 'text' },
    ...{ extensions: 'text', actor: 'text', body_type: 'text', body: 'text' },
  },
};

export async function appendEvent(tx: Transaction, event: OutboxEvent): Promise<void> {
  tx.insertUnawaited(EVENTS, [
    event.id,
    event.type,
    event.subject,
    event.scope,
    event.time,
    event.audience,
    JSON.stringify(event.extensions),
    event.actor === undefined ? null : JSON.stringify(event.actor),
    event.body?.type ?? null,
    event.body?.json ?? null,
  ]);
}
