import { denied } from '../../base/errors.ts';
import { nameOf } from '../../contract/capabilities.ts';
import { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';
import {
  type AdvisoryEvent,
  ReviewState,
} from '../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import type { Caller } from '../../resource/caller.ts';

const APPROVE = Capability.CAP_ADVISORIES_APPROVE;

/** Whether the event claims that somebody has judged it. */
export const isReviewed = ({ reviewState }: AdvisoryEvent): boolean => reviewState > ReviewState.PENDING;

/** Whoever writes an event may not also be the one who waves it through, unless they hold that capability. */
export const mayReview = (caller: Caller, uid: string): boolean => caller.can([APPROVE], uid);

export function requireReview(caller: Caller, uid: string): void {
  if (mayReview(caller, uid)) return;
  throw denied(`reviewing an event needs ${nameOf(APPROVE)} on ${uid}`, { capabilities: nameOf(APPROVE), scope: uid });
}
