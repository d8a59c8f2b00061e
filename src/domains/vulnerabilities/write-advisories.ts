import { equals } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { invalid, notFound } from '../../base/errors.ts';
import { timeOrderedUid } from '../../base/time-ordered-uid.ts';
import { newUid, parentOf } from '../../base/uid.ts';
import {
  type Advisory,
  type AdvisoryEvent,
  AdvisoryEventSchema,
  AdvisorySchema,
  ReviewState,
} from '../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import type { Stored } from '../../resource/definition.ts';
import type { WriteContext } from '../../resource/operation.ts';
import { requireParent } from '../../resource/parent.ts';
import { find } from '../../resource/read.ts';
import { refuse } from '../../resource/validate.ts';
import { deleteOne, insert, update } from '../../resource/write.ts';
import { advisories } from './advisories.ts';
import { newAdvisoryId } from './advisory-id.ts';
import { advisoryProblems, eventProblems } from './advisory-rules.ts';
import { isReviewed, requireReview } from './reviews.ts';

/** Stores a new advisory with its events. What the caller may, the contract has checked; all but reviews. */
export async function createAdvisory(ctx: WriteContext, group: string, given: Advisory): Promise<Advisory> {
  const { db, caller, now } = ctx;
  refuse(advisoryProblems(given));
  if (given.events.some(isReviewed)) requireReview(caller, group);
  await requireParent(db.forShare, advisories, group);
  const uid = timeOrderedUid(group, now);
  const message: Advisory = {
    ...given,
    advisoryId: given.advisoryId || newAdvisoryId(),
    author: given.author || caller.uid,
    events: oldestFirst(given.events.map((event) => begun(ctx, uid, event))),
  };
  return (await insert(db, advisories, { message, uid, parent: group }, now)).message;
}

/** Replaces all but the events, which have methods of their own: whoever leaves them out does not mean to delete them. */
export async function updateAdvisory(ctx: WriteContext, given: Advisory): Promise<Advisory> {
  const before = await held(ctx, given.uid);
  const { uid, advisoryId, createTime, updateTime, severities, events } = before.message;
  if (given.advisoryId !== '' && given.advisoryId !== advisoryId) {
    throw invalid('advisory_id', 'cannot be changed after creation');
  }
  const author = given.author || before.message.author;
  const after = { ...given, uid, advisoryId, author, createTime, updateTime, severities, events } as Advisory;
  refuse(advisoryProblems(after));
  return store(ctx, before, after);
}

export async function deleteAdvisory(ctx: WriteContext, uid: string): Promise<void> {
  await deleteOne(ctx.db, advisories, await held(ctx, uid));
}

export async function createEvent(ctx: WriteContext, advisory: string, given: AdvisoryEvent): Promise<AdvisoryEvent> {
  refuse(eventProblems(given, 'advisory_event'));
  if (isReviewed(given)) requireReview(ctx.caller, advisory);
  const before = await held(ctx, advisory);
  const event = begun(ctx, advisory, given);
  await putEvents(ctx, before, [...before.message.events, event]);
  return event;
}

/** Replaces an event. One that is changed must be reviewed again; who says it was, must be one who may. */
export async function updateEvent(ctx: WriteContext, given: AdvisoryEvent): Promise<AdvisoryEvent> {
  refuse(eventProblems(given, 'advisory_event'));
  const { uid } = given;
  const before = await held(ctx, parentOf(uid));
  const { events } = before.message;
  const known = events.find((event) => event.uid === uid);
  if (!known) throw notFound('advisory event', uid);
  const createTime = timestampFromMs(timeOf(given.createTime ? given : known));
  const event = { ...signed(ctx, given), uid, createTime, ...(known.updateTime && { updateTime: known.updateTime }) };
  if (equals(AdvisoryEventSchema, event, known)) return known;
  if (isReviewed(event)) requireReview(ctx.caller, uid);
  const changed = { ...event, updateTime: timestampFromMs(ctx.now) };
  await putEvents(
    ctx,
    before,
    events.map((one) => (one === known ? changed : one)),
  );
  return changed;
}

/** The advisory, kept from changing until the transaction ends. */
async function held({ db }: WriteContext, uid: string): Promise<Stored<Advisory>> {
  const stored = await find(db.forUpdate, advisories, uid);
  if (!stored) throw notFound(advisories.kind, uid);
  return stored;
}

async function putEvents(ctx: WriteContext, before: Stored<Advisory>, events: readonly AdvisoryEvent[]): Promise<void> {
  const after = { ...before.message, events: oldestFirst(events) };
  refuse(advisoryProblems(after));
  await store(ctx, before, after);
}

async function store(
  { db, now, unchanged }: WriteContext,
  before: Stored<Advisory>,
  message: Advisory,
): Promise<Advisory> {
  if (!equals(AdvisorySchema, message, before.message)) {
    return (await update(db, advisories, before, { message, state: before.state }, now)).message;
  }
  unchanged();
  return before.message;
}

function begun(ctx: WriteContext, advisory: string, given: AdvisoryEvent): AdvisoryEvent {
  const time = timestampFromMs(ctx.now);
  const createTime = given.createTime ? timestampFromMs(timeOf(given)) : time;
  return { ...signed(ctx, given), uid: newUid(advisory), createTime, updateTime: time };
}

/** With the names of those who wrote and reviewed it: the caller, unless another is said. */
function signed({ caller }: WriteContext, given: AdvisoryEvent): AdvisoryEvent {
  const reviewState = given.reviewState || ReviewState.PENDING;
  const reviewer = given.reviewer || (isReviewed(given) ? caller.uid : '');
  return { ...given, author: given.author || caller.uid, reviewer, reviewState };
}

const oldestFirst = (events: readonly AdvisoryEvent[]): AdvisoryEvent[] =>
  events.toSorted((a, b) => timeOf(a) - timeOf(b));

const timeOf = ({ createTime }: AdvisoryEvent): number => (createTime ? timestampMs(createTime) : 0);
