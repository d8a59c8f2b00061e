import { toBinary } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { newUid, type Uid } from '../../base/uid.ts';
import {
  type AdvisoryEvent,
  AdvisoryEventSchema,
} from '../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { isReviewed } from './reviews.ts';

/**
 * The events of an advisory after an import: those of the record, oldest first.
 * - A stored event with the same time and content keeps its uid, its review if it has one, and its values of all fields
 *   that the record leaves empty.
 * - A stored event with the same time and type but other content is rewritten, and takes its review from the record.
 * - All other events of the record are new. Stored events that the record does not have are removed.
 */
export function replaceEvents(
  advisory: Uid,
  stored: readonly AdvisoryEvent[],
  imported: readonly AdvisoryEvent[],
  now: number,
): AdvisoryEvent[] {
  const contents = new Map<AdvisoryEvent, string>();
  const contentOf = (event: AdvisoryEvent): string => {
    const content = contents.get(event) ?? encodeContent(event);
    contents.set(event, content);
    return content;
  };
  const unmatched = [...stored];
  const takeMatch = (matches: (candidate: AdvisoryEvent) => boolean): AdvisoryEvent | undefined => {
    const at = unmatched.findIndex(matches);
    return at < 0 ? undefined : unmatched.splice(at, 1)[0];
  };

  const events = mayRepeat(imported) ? withoutRepeats(imported, contentOf) : imported;
  // All equal events are matched before any rewritten one, so that a rewritten one cannot take the match of another.
  const equalEvents = events.map((event) =>
    takeMatch((candidate) => isSameTime(event, candidate) && contentOf(candidate) === contentOf(event)),
  );
  return events
    .map((event, i) => {
      const equal = equalEvents[i];
      if (equal) return mergeEvent(equal, event, now);
      const old =
        event.createTime &&
        takeMatch((candidate) => candidate.type.case === event.type.case && isSameTime(event, candidate));
      return old ? rewriteEvent(old, event, now) : newEvent(advisory, event, now);
    })
    .sort((a, b) => timeOf(a) - timeOf(b));
}

/** The type and details of an event, encoded for comparison, without its times, author and review. */
const encodeContent = ({ $typeName, type }: AdvisoryEvent): string => {
  const event = { $typeName, type, uid: '', author: '', reviewer: '', reviewState: 0, findings: new Uint8Array() };
  return Buffer.from(toBinary(AdvisoryEventSchema, event)).toString('latin1');
};

/** Whether two of the events may be equal. A cheap check that avoids encoding all events. */
function mayRepeat(events: readonly AdvisoryEvent[]): boolean {
  const typesAndTimes = new Set(events.map((event) => `${event.type.case} ${timeOf(event)}`));
  return typesAndTimes.size < events.length || (events.length > 1 && events.some(({ createTime }) => !createTime));
}

/** Removes repeated events. An event without a time repeats any event with the same content. */
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

/** An imported event without a time matches any time. */
const isSameTime = (imported: AdvisoryEvent, stored: AdvisoryEvent): boolean =>
  imported.createTime === undefined || timeOf(imported) === timeOf(stored);

function mergeEvent(stored: AdvisoryEvent, imported: AdvisoryEvent, now: number): AdvisoryEvent {
  const event = withImportedDetails(stored, imported);
  // Files mark every event as approved. A review that was made on this server takes precedence.
  if (!isReviewed(stored)) {
    event.reviewer = imported.reviewer || stored.reviewer;
    event.reviewState = imported.reviewState || stored.reviewState;
  }
  const isUnchanged =
    event.author === stored.author &&
    event.reviewer === stored.reviewer &&
    event.reviewState === stored.reviewState &&
    event.issue === stored.issue &&
    Buffer.compare(event.findings, stored.findings) === 0;
  return isUnchanged ? stored : { ...event, updateTime: timestampFromMs(now) };
}

const rewriteEvent = (stored: AdvisoryEvent, imported: AdvisoryEvent, now: number): AdvisoryEvent => ({
  ...withImportedDetails(stored, imported),
  type: imported.type,
  reviewer: imported.reviewer,
  reviewState: imported.reviewState,
  updateTime: timestampFromMs(now),
});

/** The stored event with the author, issue and findings of the imported one, as far as it has them. */
function withImportedDetails(stored: AdvisoryEvent, imported: AdvisoryEvent): AdvisoryEvent {
  const event = { ...stored, author: imported.author || stored.author };
  if (imported.issue !== undefined) event.issue = imported.issue;
  if (imported.findings.length > 0) event.findings = imported.findings;
  return event;
}

function newEvent(advisory: Uid, imported: AdvisoryEvent, now: number): AdvisoryEvent {
  const createTime = timestampFromMs(imported.createTime ? timeOf(imported) : now);
  return { ...imported, uid: newUid(advisory), createTime, updateTime: timestampFromMs(now) };
}

const timeOf = ({ createTime }: AdvisoryEvent): number => (createTime ? timestampMs(createTime) : 0);
