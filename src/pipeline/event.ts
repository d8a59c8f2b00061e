import { randomUUID } from 'node:crypto';
import { encodeJson } from '../contract/json/encode.ts';
import type { EventSpec } from '../contract/method.ts';
import type { EventFacts, WriteContext } from '../resource/operation.ts';
import { appendEvent } from '../store/outbox.ts';

/** Puts the event of a change into the outbox, in the transaction of the change. */
export async function recordEvent(ctx: WriteContext, spec: EventSpec, facts: EventFacts | undefined): Promise<void> {
  if (!facts) throw new Error(`${ctx.method.id}: its operation does not say what its event is about`);
  const { subject, extensions, body } = facts;
  const missing = spec.extensions.find((name) => extensions[name] === undefined);
  if (missing) throw new Error(`${ctx.method.id}: its event lacks the extension ${missing}`);
  await appendEvent(ctx.db, {
    id: randomUUID(),
    type: spec.type,
    subject,
    scope: extensions.group ?? '',
    time: ctx.now,
    audience: spec.audience,
    extensions: Object.fromEntries(spec.extensions.map((name) => [name, extensions[name] ?? ''])),
    actor: ctx.caller.actor,
    body: body && { type: body.schema.typeName, json: encodeJson(body.schema, body.message) },
  });
}
