import { toBinary } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { createLru } from '../../base/lru.ts';
import { IdentitySchema } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { identities } from '../../domains/iam/identities/identities.ts';
import { find } from '../../resource/read.ts';
import type { Store, Transaction } from '../../store/store.ts';

/** The precision of `last_seen_time`: an identity causes one write in this time, not one per request. */
const INTERVAL_MS = 60_000;
const MAX_CACHED = 10_000;

// Bypasses src/resource/write.ts on purpose: no list, filter or access depends on this time, and it is not an update.
const UPDATE_BODY = 'UPDATE resource SET body = $3 WHERE kind = $1 AND uid = $2';

export interface LastSeenOptions {
  readonly store: Pick<Store, 'write'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Returns the function that records when an identity was last seen. It does not delay the request, nor fail it. */
export function createLastSeenRecorder({ store, clock, log }: LastSeenOptions): (identity: string) => void {
  const recordedAt = createLru<string, number>(MAX_CACHED);
  return (identity) => {
    const now = clock();
    if (now - (recordedAt.get(identity) ?? Number.NEGATIVE_INFINITY) < INTERVAL_MS) return;
    recordedAt.set(identity, now);
    store
      .write((tx) => record(tx, identity, now))
      .catch((error: unknown) => log.warn({ error, identity }, 'cannot record when an identity was last seen'));
  };
}

async function record(tx: Transaction, uid: string, now: number): Promise<void> {
  const message = (await find(tx.forUpdate, identities, uid))?.message;
  // Another server may have recorded it since.
  if (!message || (message.lastSeenTime && now - timestampMs(message.lastSeenTime) < INTERVAL_MS)) return;
  message.lastSeenTime = timestampFromMs(now);
  await tx.run(UPDATE_BODY, identities.kind, uid, toBinary(IdentitySchema, message));
}
