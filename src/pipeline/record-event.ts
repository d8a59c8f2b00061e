import { randomUUID } from 'node:crypto';
import { traceHeaders } from '../base/trace-context.ts';
import { currentSpan } from '../base/tracing.ts';
import { eventSource } from '../contract/event-source.ts';
import { encodeJson } from '../contract/json/encode.ts';
import type { CallContext, EventFacts } from '../resource/operation.ts';
import { appendEvent, type OutboxEvent } from '../store/outbox.ts';
import type { Transaction } from '../store/store.ts';

/** The facts of any event. Those of the registry have a JSON body that no message of the contract describes. */
export type AnyEventFacts = Omit<EventFacts, 'body'> & {
  readonly body: EventFacts['body'] | { readonly json: string };
};

/** Writes the event of a change to the outbox, in the transaction of the change. */
export const recordEvent = (
  ctx: CallContext & { readonly db: Transaction },
  facts: AnyEventFacts | undefined,
): Promise<void> => appendEvent(ctx.db, outboxEvent(ctx, facts));

/** The event of a call: what the contract declares for its method, with the facts that the operation supplies. */
export function outboxEvent(ctx: CallContext, facts: AnyEventFacts | undefined): OutboxEvent {
  const { id, event } = ctx.method;
  if (!event || !facts)
    throw new Error(`${id}: ${event ? 'its operation supplies' : 'its contract declares'} no event`);
  const { subject, extensions, body } = facts;
  const missing = event.extensions.find((name) => extensions[name] === undefined);
  if (missing) throw new Error(`${id}: its event lacks the extension ${missing}`);
  return {
    id: randomUUID(),
    type: event.type,
    source: eventSource(ctx.method),
    subject,
    scope: extensions.group ?? '',
    time: ctx.now,
    audience: event.audience,
    extensions: withTrace(Object.fromEntries(event.extensions.map((name) => [name, extensions[name] ?? '']))),
    actor: ctx.caller.actor,
    body: body && bodyOf(body),
  };
}

/** Adds the attributes of the CloudEvents extension Distributed Tracing, if this call is part of a trace. */
function withTrace(extensions: Record<string, string>): Record<string, string> {
  const span = currentSpan();
  return span ? { ...extensions, ...traceHeaders(span.context) } : extensions;
}

const bodyOf = (body: NonNullable<AnyEventFacts['body']>): OutboxEvent['body'] =>
  'json' in body ? body : { type: body.schema.typeName, json: encodeJson(body.schema, body.message, 'event') };
