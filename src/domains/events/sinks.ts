import { create } from '@bufbuild/protobuf';
import { type Duration, durationMs, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { invalid, notFound } from '../../base/errors.ts';
import {
  RotateSecretResponseSchema,
  type Sink,
  SinkSchema,
  SinkState,
  SinksService,
} from '../../contract/gen/wharfinger/events/v1/sinks_pb.js';
import { type Operations, readOperation, writeOperation } from '../../resource/operation.ts';
import { find } from '../../resource/read.ts';
import { update } from '../../resource/write.ts';
import type { Reader } from '../../store/store.ts';
import { enableSink, findSink, type SinkRow } from './sink-rows.ts';
import { subscriptions } from './subscriptions.ts';
import { newWebhookSecret, type Seal, secretContext, type WebhookSecrets } from './webhook-secret.ts';

const { method } = SinksService;

const DAY_MS = 24 * 60 * 60 * 1000;
const DEFAULT_OVERLAP_MS = DAY_MS;
const MAX_OVERLAP_MS = 30 * DAY_MS;

export const sinkOperations = (seal: Seal): Operations => ({
  ...readOperation(method.getSink, ({ db }, { uid }) => requireSink(db, uid)),
  ...writeOperation(method.enableSink, {
    async run({ db, now }, { uid }) {
      await enableSink(db, uid, now);
      return requireSink(db, uid);
    },
  }),
  ...writeOperation(method.rotateSecret, {
    async run({ db, now }, { uid, overlap }) {
      const until = now + readOverlap(overlap);
      const before = await find(db.forUpdate, subscriptions, uid);
      if (!before) throw notFound(subscriptions.kind, uid);
      const secret = newWebhookSecret();
      const previous = { secret: (before.state as unknown as WebhookSecrets).secret, until };
      const secrets: WebhookSecrets = { secret: seal(secret, secretContext(uid)), previous };
      await update(db, subscriptions, before, { message: before.message, state: { ...secrets } }, now);
      return create(RotateSecretResponseSchema, { secret, previousExpireTime: timestampFromMs(until) });
    },
  }),
});

function readOverlap(overlap: Duration | undefined): number {
  const ms = overlap ? durationMs(overlap) : DEFAULT_OVERLAP_MS;
  if (!(ms >= 0 && ms <= MAX_OVERLAP_MS)) throw invalid('overlap', 'must be 0 to 30 days');
  return ms;
}

async function requireSink(db: Reader, uid: string): Promise<Sink> {
  const row = await findSink(db, uid);
  if (!row) throw notFound(subscriptions.kind, uid);
  return toSinkMessage(uid, row);
}

export function toSinkMessage(uid: string, { failing_since, disabled, reason }: SinkRow): Sink {
  const enabledState = failing_since === null ? SinkState.WORKING : SinkState.FAILING;
  return create(SinkSchema, {
    uid,
    state: disabled === null ? enabledState : SinkState.DISABLED,
    reason: reason ?? '',
    ...(failing_since !== null && { failingSince: timestampFromMs(failing_since) }),
    ...(disabled !== null && { disableTime: timestampFromMs(disabled) }),
  });
}
