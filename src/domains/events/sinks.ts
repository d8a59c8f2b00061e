import { create } from '@bufbuild/protobuf';
import { type Duration, durationMs, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { invalid, notFound } from '../../base/errors.ts';
import {
  type EnableSinkRequest,
  type GetSinkRequest,
  type RotateSecretRequest,
  RotateSecretResponseSchema,
  type Sink,
  SinkSchema,
  SinkState,
  SinksService,
} from '../../contract/gen/wharfinger/events/v1/sinks_pb.js';
import type { Operation, Operations } from '../../resource/operation.ts';
import { find } from '../../resource/read.ts';
import { update } from '../../resource/write.ts';
import type { Reader } from '../../store/store.ts';
import { enableSink, findSink, type SinkRow } from './sink-rows.ts';
import { subscriptions } from './subscriptions.ts';
import { newSecret, type Seal, type Secrets, secretContext } from './webhook-secret.ts';

const DAY = 24 * 60 * 60 * 1000;
const OVERLAP = DAY;
const MAX_OVERLAP = 30 * DAY;

export function sinkOperations(seal: Seal): Operations {
  const { typeName, method } = SinksService;
  return {
    [`${typeName}/${method.getSink.name}`]: get,
    [`${typeName}/${method.enableSink.name}`]: enable,
    [`${typeName}/${method.rotateSecret.name}`]: rotateSecret(seal),
  };
}

const get: Operation = {
  mode: 'read',
  run: ({ db }, request) => read(db, (request as GetSinkRequest).uid),
};

const enable: Operation = {
  mode: 'write',
  async run({ db, now }, request) {
    const { uid } = request as EnableSinkRequest;
    await enableSink(db, uid, now);
    return read(db, uid);
  },
};

const rotateSecret = (seal: Seal): Operation => ({
  mode: 'write',
  async run({ db, now }, request) {
    const { uid, overlap } = request as RotateSecretRequest;
    const until = now + overlapOf(overlap);
    const before = await find(db.forUpdate, subscriptions, uid);
    if (!before) throw notFound(subscriptions.kind, uid);
    const secret = newSecret();
    const former = (before.state as unknown as Secrets).secret;
    const secrets: Secrets = { secret: seal(secret, secretContext(uid)), previous: { secret: former, until } };
    await update(db, subscriptions, before, { message: before.message, state: { ...secrets } }, now);
    return create(RotateSecretResponseSchema, { secret, previousExpireTime: timestampFromMs(until) });
  },
});

function overlapOf(overlap: Duration | undefined): number {
  const ms = overlap ? durationMs(overlap) : OVERLAP;
  if (!(ms >= 0 && ms <= MAX_OVERLAP)) throw invalid('overlap', 'must be 0 to 30 days');
  return ms;
}

async function read(db: Reader, uid: string): Promise<Sink> {
  const row = await findSink(db, uid);
  if (!row) throw notFound(subscriptions.kind, uid);
  return sinkMessage(uid, row);
}

export function sinkMessage(uid: string, { failing_since, disabled, reason }: SinkRow): Sink {
  const standing = failing_since === null ? SinkState.WORKING : SinkState.FAILING;
  return create(SinkSchema, {
    uid,
    state: disabled === null ? standing : SinkState.DISABLED,
    reason: reason ?? '',
    ...(failing_since !== null && { failingSince: timestampFromMs(failing_since) }),
    ...(disabled !== null && { disableTime: timestampFromMs(disabled) }),
  });
}
