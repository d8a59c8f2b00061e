import { equals } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { newUid } from '../../base/uid.ts';
import {
  type AdvisoryEvent,
  AdvisoryEventSchema,
} from '../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';

/**
 * The events of an advisory after `given` came in, oldest first. What happened when makes an event: one that is there
 * already takes over who reviewed it and so on, and is never there twice. What is there and not given stays.
 */
export function mergeEvents(
  advisory: string,
  stored: readonly AdvisoryEvent[],
  given: readonly AdvisoryEvent[],
  now: number,
): AdvisoryEvent[] {
  const merged = [...stored];
  for (const event of given) {
    const at = merged.findIndex((known) => isSame(known, event));
    const known = merged[at];
    if (known) merged[at] = takeOver(known, event, now);
    else merged.push(begin(advisory, event, now));
  }
  return merged.sort((a, b) => timeOf(a) - timeOf(b));
}

/** An event that says no time is the same as one of any time. */
function isSame(known: AdvisoryEvent, given: AdvisoryEvent): boolean {
  if (given.type.case !== known.type.case) return false;
  if (given.createTime && timeOf(given) !== timeOf(known)) return false;
  return equals(AdvisoryEventSchema, justType(given), justType(known));
}

const justType = ({ $typeName, type }: AdvisoryEvent): AdvisoryEvent => ({
  $typeName,
  type,
  uid: '',
  author: '',
  reviewer: '',
  reviewState: 0,
  findings: new Uint8Array(),
});

function takeOver(known: AdvisoryEvent, given: AdvisoryEvent, now: number): AdvisoryEvent {
  const { uid, createTime, updateTime } = known;
  const event = { ...given, uid, createTime, updateTime };
  return equals(AdvisoryEventSchema, event, known) ? known : { ...event, updateTime: timestampFromMs(now) };
}

function begin(advisory: string, given: AdvisoryEvent, now: number): AdvisoryEvent {
  const createTime = timestampFromMs(given.createTime ? timeOf(given) : now);
  return { ...given, uid: newUid(advisory), createTime, updateTime: timestampFromMs(now) };
}

const timeOf = ({ createTime }: AdvisoryEvent): number => (createTime ? timestampMs(createTime) : 0);
