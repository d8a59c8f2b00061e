import type { ParentUid } from '../base/uid.ts';
import type { EventReaders } from '../contract/event-readers.ts';
import { decodeMaker, type MakerAccess, pauseReason } from '../domains/events/maker.ts';

/** What a subscription may receive now. */
export interface SubscriptionAccess {
  /** Why it receives nothing; undefined if it is not paused. */
  readonly pauseReason: string | undefined;
  /** Whether its maker may read an event of this type in the group `scope`. */
  mayReceive(type: string, scope: string): boolean;
}

/** Subscriptions from before makers were recorded receive everything, until they are taken over. */
const UNRESTRICTED: SubscriptionAccess = { pauseReason: undefined, mayReceive: () => true };

/**
 * Returns the function that determines the access of a subscription from its maker, as stored, and its group. An event
 * contains a resource, so the maker of the subscription must be able to read it.
 */
export const createSubscriptionAccess =
  (makerAccess: MakerAccess, readers: EventReaders) =>
  async (maker: string | null, group: ParentUid): Promise<SubscriptionAccess> => {
    if (maker === null) return UNRESTRICTED;
    const caller = await makerAccess(maker);
    return {
      pauseReason: pauseReason(decodeMaker(maker), caller, group),
      mayReceive(type, scope) {
        const capabilities = readers.get(type);
        return capabilities !== undefined && (caller?.can(capabilities, scope as ParentUid) ?? false);
      },
    };
  };

export type FindSubscriptionAccess = ReturnType<typeof createSubscriptionAccess>;
