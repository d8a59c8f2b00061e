import { REGISTRY_SOURCE } from '../contract/event-source.ts';
import type { Row } from '../store/store.ts';

/** The columns of an event in the outbox that a delivery needs. */
export interface EventRow extends Row {
  readonly event_id: string;
  readonly type: string;
  readonly subject: string;
  readonly scope: string;
  readonly time: number;
  readonly audience: string;
  readonly extensions: string;
  readonly actor: string | null;
  readonly body_type: string | null;
  readonly body: string | null;
}

export const EVENT_COLUMNS =
  'o.event_id, o.type, o.subject, o.scope, o.time, o.audience, o.extensions, o.actor, o.body_type, o.body';

/** The attributes of a delivered event that are not in the outbox. */
export interface DeliveryAttributes {
  /** The URL of this server. */
  readonly publicUrl: string;
  readonly subscription: string;
  readonly sink: string;
}

/** Returns the headers of a CloudEvent in the binary mode of its HTTP binding. */
export function cloudEventHeaders(
  event: EventRow,
  { publicUrl, subscription, sink }: DeliveryAttributes,
): Record<string, string> {
  const { source, ...extensions } = JSON.parse(event.extensions) as Record<string, string>;
  const attributes: Record<string, string> = {
    ...extensions,
    specversion: '1.0',
    id: event.event_id,
    type: event.type,
    source: sourceUrl(publicUrl, source),
    subject: event.subject,
    time: new Date(event.time).toISOString(),
    audience: event.audience,
    actor: event.actor === null ? '' : ((JSON.parse(event.actor) as { subject?: string }).subject ?? ''),
    bodytype: event.body_type ?? '',
    chainguarddev1delivery: 'webhook',
    chainguarddev1webhook: sink,
    chainguarddev1subscription: subscription,
  };
  // An attribute must not be empty (CloudEvents 1.0.2, section 3).
  const present = Object.entries(attributes).filter(([, value]) => value !== '');
  return {
    'content-type': 'application/json',
    ...Object.fromEntries(present.map(([name, value]) => [`ce-${name}`, headerValue(value)])),
  };
}

/**
 * The URL of the collection that was called. The registry has its host name instead, which existing receivers expect.
 * Events that no call has caused, and those of earlier releases, have the URL of the server.
 */
function sourceUrl(publicUrl: string, source: string | undefined): string {
  if (source === undefined) return publicUrl;
  if (source !== REGISTRY_SOURCE) return `${publicUrl}${source}`;
  const { hostname } = new URL(publicUrl);
  // The address `[::1]` alone is not a URI reference.
  return hostname.startsWith('[') ? `//${hostname}` : hostname;
}

/** Returns the data of an event: the actor and the changed resource. Both are stored as JSON. */
export function eventData({ actor, body }: EventRow): string {
  const members = Object.entries({ actor, body }).filter(([, json]) => json !== null);
  return `{${members.map(([name, json]) => `"${name}":${json}`).join(',')}}`;
}

/** Escapes quotes, percent signs and all but visible ASCII (CloudEvents HTTP binding 1.0.2, section 3.1.3.2). */
const headerValue = (text: string): string =>
  text.toWellFormed().replace(/[^\x21\x23\x24\x26-\x7e]/gu, encodeURIComponent);
