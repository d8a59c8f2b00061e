import type { Row } from '../store/store.ts';

/** An event as it waits in the outbox. */
export interface EventRow extends Row {
  readonly event_id: string;
  readonly type: string;
  readonly subject: string;
  readonly time: number;
  readonly audience: string;
  readonly extensions: string;
  readonly actor: string | null;
  readonly body_type: string | null;
  readonly body: string | null;
}

export const EVENT_COLUMNS =
  'o.event_id, o.type, o.subject, o.time, o.audience, o.extensions, o.actor, o.body_type, o.body';

export interface Envelope {
  readonly source: string;
  readonly subscription: string;
  readonly sink: string;
}

/** The headers of a CloudEvent in the binary mode of its HTTP binding. */
export function cloudEventHeaders(event: EventRow, { source, subscription, sink }: Envelope): Record<string, string> {
  const attributes: Record<string, string> = {
    ...(JSON.parse(event.extensions) as Record<string, string>),
    specversion: '1.0',
    id: event.event_id,
    type: event.type,
    source,
    subject: event.subject,
    time: new Date(event.time).toISOString(),
    audience: event.audience,
    bodytype: event.body_type ?? '',
    chainguarddev1delivery: 'webhook',
    chainguarddev1webhook: sink,
    chainguarddev1subscription: subscription,
  };
  // An attribute that is there must not be empty (CloudEvents 1.0.2, section 3).
  const given = Object.entries(attributes).filter(([, value]) => value !== '');
  return {
    'content-type': 'application/json',
    ...Object.fromEntries(given.map(([name, value]) => [`ce-${name}`, headerValue(value)])),
  };
}

/** The data of an event: who did it, and what became of it. Both are JSON as they are stored. */
export function eventData({ actor, body }: EventRow): string {
  const members = Object.entries({ actor, body }).filter(([, json]) => json !== null);
  return `{${members.map(([name, json]) => `"${name}":${json}`).join(',')}}`;
}

/** CloudEvents HTTP binding 1.0.2, section 3.1.3.2: what is not visible ASCII, quotes and percent signs are escaped. */
const headerValue = (text: string): string =>
  text.toWellFormed().replace(/[^\x21\x23\x24\x26-\x7e]/gu, encodeURIComponent);
