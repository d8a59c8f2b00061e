import type { BulkInsert } from './bulk-insert.ts';
import type { Transaction } from './store.ts';

/** An event of a change, with the attributes of CloudEvents. It is delivered if and only if its transaction commits. */
export interface OutboxEvent {
  /** Never reused, so that a receiver can ignore an event that it has received before. */
  readonly id: string;
  readonly type: string;
  /** What emits the event, see event-source.ts. Absent if no method does. */
  readonly source?: string;
  /** The uid of the resource that changed. */
  readonly subject: string;
  /** The extension attribute `group`: subscriptions of this group and of its ancestors receive the event. */
  readonly scope: string;
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly audience: 'customer' | 'internal';
  readonly extensions: Readonly<Record<string, string>>;
  /** The identity that made the change, as JSON. */
  readonly actor?: object | undefined;
  /**
   * The changed resource as protobuf JSON with the names of the contract (`role_uidp`), and the full name of its message.
   * No name if it is not a message.
   */
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
    // A server of a release without sources replaces the attribute.
    JSON.stringify(event.source ? { ...event.extensions, source: event.source } : event.extensions),
    event.actor === undefined ? null : JSON.stringify(event.actor),
    event.body?.type ?? null,
    event.body?.json ?? null,
  ]);
}
