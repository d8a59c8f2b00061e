import { create } from '@bufbuild/protobuf';
import { type Duration, durationMs, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { invalid, notFound, precondition } from '../../base/errors.ts';
import { type ParentUid, parentOf } from '../../base/uid.ts';
import {
  Handshake,
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
import { decodeMaker, encodeMaker, type MakerAccess, pauseReason } from './maker.ts';
import { enableSink, findSink, SECRET_LOST_REASON, type SinkRow, setHandshake, takeOverSink } from './sink-rows.ts';
import { subscriptions } from './subscriptions.ts';
import { LOST_SECRET, newWebhookSecret, type Seal, secretContext, type WebhookSecrets } from './webhook-secret.ts';

const { method } = SinksService;

const DAY_MS = 24 * 60 * 60 * 1000;
const DEFAULT_OVERLAP_MS = DAY_MS;
const MAX_OVERLAP_MS = 30 * DAY_MS;

export interface SinkOptions {
  readonly seal: Seal;
  readonly makerAccess: MakerAccess;
}

export const sinkOperations = ({ seal, makerAccess }: SinkOptions): Operations => ({
  ...readOperation(method.getSink, ({ db, now }, { uid }) => requireSink(db, makerAccess, uid, now)),
  ...writeOperation(method.takeOverSink, {
    async run({ db, caller, now }, { uid }) {
      await takeOverSink(db, uid, encodeMaker(caller, now), now);
      return requireSink(db, makerAccess, uid, now);
    },
  }),
  ...writeOperation(method.updateSink, {
    async run({ db, now }, { uid, handshake }) {
      if (handshake !== Handshake.NONE && handshake !== Handshake.REQUIRED) {
        throw invalid('handshake', 'must be HANDSHAKE_NONE or HANDSHAKE_REQUIRED');
      }
      await setHandshake(db, uid, handshake === Handshake.REQUIRED);
      return requireSink(db, makerAccess, uid, now);
    },
  }),
  ...writeOperation(method.enableSink, {
    async run({ db, now }, { uid }) {
      const stored = await find(db, subscriptions, uid);
      if ((stored?.state as WebhookSecrets | undefined)?.secret === LOST_SECRET) {
        throw precondition('SECRET_LOST', uid, `${SECRET_LOST_REASON}, then enable it`);
      }
      await enableSink(db, uid, now);
      return requireSink(db, makerAccess, uid, now);
    },
  }),
  ...writeOperation(method.rotateSecret, {
    async run({ db, now }, { uid, overlap }) {
      const until = now + readOverlap(overlap);
      const before = await find(db.forUpdate, subscriptions, uid);
      if (!before) throw notFound(subscriptions.kind, uid);
      const secret = newWebhookSecret();
      const { secret: former } = before.state as unknown as WebhookSecrets;
      const previous = former === LOST_SECRET ? {} : { previous: { secret: former, until } };
      const secrets: WebhookSecrets = { secret: await seal(db, secret, secretContext(uid)), ...previous };
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

/** Whether the subscription is paused is determined now: delivery notices it with the next event. */
async function requireSink(db: Reader, makerAccess: MakerAccess, uid: string, now: number): Promise<Sink> {
  const row = await findSink(db, uid);
  if (!row) throw notFound(subscriptions.kind, uid);
  const { maker, paused, reason, disabled } = row;
  const problem =
    maker === null ? undefined : pauseReason(decodeMaker(maker), await makerAccess(maker), parentOf(uid) as ParentUid);
  return toSinkMessage(uid, {
    ...row,
    paused: problem === undefined ? null : (paused ?? now),
    reason: disabled === null ? (problem ?? reason) : reason,
  });
}

export function toSinkMessage(uid: string, row: SinkRow): Sink {
  const { failing_since, accepted, handshake } = row;
  return create(SinkSchema, {
    uid,
    state: stateOf(row),
    reason: row.reason ?? '',
    maker: row.maker === null ? '' : decodeMaker(row.maker).identity,
    handshake: handshake === null ? Handshake.NONE : Handshake.REQUIRED,
    allowedRate: row.allowed_rate ?? 0,
    ...(failing_since !== null && { failingSince: timestampFromMs(failing_since) }),
    ...(row.disabled !== null && { disableTime: timestampFromMs(row.disabled) }),
    ...(accepted !== null && { acceptTime: timestampFromMs(accepted) }),
    ...(handshake !== null && handshake > 0 && { handshakeTime: timestampFromMs(handshake) }),
  });
}

function stateOf({ disabled, paused, failing_since }: SinkRow): SinkState {
  if (disabled !== null) return SinkState.DISABLED;
  if (paused !== null) return SinkState.PAUSED;
  return failing_since === null ? SinkState.WORKING : SinkState.FAILING;
}
