import { denied } from '../../base/errors.ts';
import type { Uid } from '../../base/uid.ts';
import { capabilityName } from '../../contract/capabilities.ts';
import { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';
import {
  type AdvisoryEvent,
  ReviewState,
} from '../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import type { Caller } from '../../resource/caller.ts';

const APPROVE = Capability.CAP_ADVISORIES_APPROVE;

/** Whether the event has a review: approved, rejected or changes requested. */
export const isReviewed = ({ reviewState }: AdvisoryEvent): boolean => reviewState > ReviewState.PENDING;

/** Whether the caller may set the review state of events. Writing an event does not include the right to approve it. */
export const canReview = (caller: Caller, uid: Uid): boolean => caller.can([APPROVE], uid);

export function requireCanReview(caller: Caller, uid: Uid): void {
  if (canReview(caller, uid)) return;
  throw denied(`reviewing an event needs ${capabilityName(APPROVE)} on ${uid}`, {
    capabilities: capabilityName(APPROVE),
    scope: uid,
  });
}
