import { toBinary } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { newUid } from '../../base/uid.ts';
import {
  type AdvisoryEvent,
  AdvisoryEventSchema,
} from '../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { isReviewed } from './reviews.ts';

/**
 * The events of an advisory after a record came in: those of the record, oldest first. What happened when makes an event.
 * One that was there stays the same event and keeps what the record does not say, and a review that was made here; one
 * that says something else of the same time was rewritten, which nobody has reviewed.
 */
export function replaceEvents(
  advisory: string,
  stored: readonly AdvisoryEvent[],
  given: readonly AdvisoryEvent[],
  now: number,
): AdvisoryEvent[] {
  const contents = new Map<AdvisoryEvent, string>();
  const contentOf = (event: AdvisoryEvent): string => {
    const content = contents.get(event) ?? encodeContent(event);
    contents.set(event, content);
    return content;
  };
  const left = [...stored];
  const take = (fits: (known: AdvisoryEvent) => boolean): AdvisoryEvent | undefined => {
    const at = left.findIndex(fits);
    return at < 0 ? undefined : left.splice(at, 1)[0];
  };

  const wanted = mayRepeat(given) ? withoutRepeats(given, contentOf) : given;
  const same = wanted.map((event) =>
    take((known) => isAtTimeOf(event, known) && contentOf(known) === contentOf(event)),
  );
  return wanted
    .map((event, i) => {
      const known = same[i];
      if (known) return confirmed(known, event, now);
      const rewritten =
        event.createTime && take((other) => other.type.case === event.type.case && isAtTimeOf(event, other));
      return rewritten ? rewrittenAs(rewritten, event, now) : begun(advisory, event, now);
    })
    .sort((a, b) => timeOf(a) - timeOf(b));
}

/** What happened, apart from when and from who says so. */
const encodeContent = ({ $typeName, type }: AdvisoryEvent): string => {
  const event = { $typeName, type, uid: '', author: '', reviewer: '', reviewState: 0, findings: new Uint8Array() };
  return Buffer.from(toBinary(AdvisoryEventSchema, event)).toString('latin1');
};

/** Whether two may be the same, by a look that costs nothing. */
function mayRepeat(events: readonly AdvisoryEvent[]): boolean {
  const moments = new Set(events.map((event) => `${event.type.case} ${timeOf(event)}`));
  return moments.size < events.length || (events.length > 1 && events.some(({ createTime }) => !createTime));
}

/** An event without a time repeats any that says the same. */
function withoutRepeats(
  events: readonly AdvisoryEvent[],
  contentOf: (event: AdvisoryEvent) => string,
): readonly AdvisoryEvent[] {
  const timed = new Set(events.filter(({ createTime }) => createTime).map(contentOf));
  const seen = new Set<string>();
  return events.filter((event) => {
    const content = contentOf(event);
    if (!event.createTime && timed.has(content)) return false;
    const key = `${event.createTime ? timeOf(event) : ''} ${content}`;
    return !seen.has(key) && seen.add(key);
  });
}

/** An event that says no time may be of any time. */
const isAtTimeOf = (given: AdvisoryEvent, known: AdvisoryEvent): boolean =>
  given.createTime === undefined || timeOf(given) === timeOf(known);

function confirmed(known: AdvisoryEvent, given: AdvisoryEvent, now: number): AdvisoryEvent {
  const event = signed(known, given);
  // Files say of everything that it was published. Whoever looked at it here knows better.
  if (!isReviewed(known)) {
    event.reviewer = given.reviewer || known.reviewer;
    event.reviewState = given.reviewState || known.reviewState;
  }
  const isSame =
    event.author === known.author &&
    event.reviewer === known.reviewer &&
    event.reviewState === known.reviewState &&
    event.issue === known.issue &&
    Buffer.compare(event.findings, known.findings) === 0;
  return isSame ? known : { ...event, updateTime: timestampFromMs(now) };
}

const rewrittenAs = (known: AdvisoryEvent, given: AdvisoryEvent, now: number): AdvisoryEvent => ({
  ...signed(known, given),
  type: given.type,
  reviewer: given.reviewer,
  reviewState: given.reviewState,
  updateTime: timestampFromMs(now),
});

/** A known event with what the record says about it besides what happened and who reviewed it. */
function signed(known: AdvisoryEvent, given: AdvisoryEvent): AdvisoryEvent {
  const event = { ...known, author: given.author || known.author };
  if (given.issue !== undefined) event.issue = given.issue;
  if (given.findings.length > 0) event.findings = given.findings;
  return event;
}

function begun(advisory: string, given: AdvisoryEvent, now: number): AdvisoryEvent {
  const createTime = timestampFromMs(given.createTime ? timeOf(given) : now);
  return { ...given, uid: newUid(advisory), createTime, updateTime: timestampFromMs(now) };
}

const timeOf = ({ createTime }: AdvisoryEvent): number => (createTime ? timestampMs(createTime) : 0);
