import { toBinary } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { createLru } from '../../base/lru.ts';
import { type Identity, IdentitySchema } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { identities } from '../../domains/iam/identities/identities.ts';
import { find } from '../../resource/read.ts';
import type { Store, Transaction } from '../../store/store.ts';

/** How exact `last_seen_time` is: a busy identity costs one write in this time, not one per request. */
const INTERVAL_MS = 60_000;
const MAX_REMEMBERED = 10_000;

// Past the engine on purpose: no order or filter holds this time, nobody's access changes, and it is no update.
const REMEMBER = 'UPDATE resource SET body = $3 WHERE kind = $1 AND uid = $2';

export interface LastSeenOptions {
  readonly store: Pick<Store, 'write'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Notes that an identity was here. Never holds up the request, nor fails it. */
export function createLastSeen({ store, clock, log }: LastSeenOptions): (identity: string) => void {
  const noted = createLru<string, number>(MAX_REMEMBERED);
  return (identity) => {
    const now = clock();
    if (now - (noted.get(identity) ?? Number.NEGATIVE_INFINITY) < INTERVAL_MS) return;
    noted.set(identity, now);
    store
      .write((tx) => note(tx, identity, now))
      .catch((error: unknown) => log.warn({ error, identity }, 'cannot note when an identity was last seen'));
  };
}

async function note(tx: Transaction, uid: string, now: number): Promise<void> {
  const message = (await find(tx.forUpdate, identities, uid))?.message as Identity | undefined;
  // Another server may have noted it meanwhile.
  if (!message || (message.lastSeenTime && now - timestampMs(message.lastSeenTime) < INTERVAL_MS)) return;
  message.lastSeenTime = timestampFromMs(now);
  await tx.run(REMEMBER, identities.kind, uid, toBinary(IdentitySchema, message));
}
