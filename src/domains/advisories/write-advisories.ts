import { equals } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { invalid, notFound } from '../../base/errors.ts';
import { timeOrderedUid } from '../../base/time-ordered-uid.ts';
import { newUid, parentOf, parseUid, type Uid } from '../../base/uid.ts';
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
import { isReviewed, requireCanReview } from './reviews.ts';

/** Stores a new advisory with its events. The pipeline has checked the capabilities, except that for reviews. */
export async function createAdvisory(ctx: WriteContext, group: Uid, advisory: Advisory): Promise<Advisory> {
  const { db, caller, now } = ctx;
  refuse(advisoryProblems(advisory));
  if (advisory.events.some(isReviewed)) requireCanReview(caller, group);
  await requireParent(db.forShare, advisories, group);
  const uid = timeOrderedUid(group, now);
  const message: Advisory = {
    ...advisory,
    advisoryId: advisory.advisoryId || newAdvisoryId(),
    author: advisory.author || caller.uid,
    events: oldestFirst(advisory.events.map((event) => newEvent(ctx, uid, event))),
  };
  return (await insert(db, advisories, { message, uid, parent: group }, now)).message;
}

/** Replaces all fields except the severities, and the events, which have methods of their own. */
export async function updateAdvisory(ctx: WriteContext, advisory: Advisory): Promise<Advisory> {
  const before = await findForUpdate(ctx, advisory.uid);
  const { uid, advisoryId, createTime, updateTime, severities, events } = before.message;
  if (advisory.advisoryId !== '' && advisory.advisoryId !== advisoryId) {
    throw invalid('advisory_id', 'cannot be changed after creation');
  }
  const after = { ...advisory, uid, advisoryId, createTime, updateTime, severities, events } as Advisory;
  refuse(advisoryProblems(after));
  return store(ctx, before, after);
}

export async function deleteAdvisory(ctx: WriteContext, uid: string): Promise<void> {
  await deleteOne(ctx.db, advisories, await findForUpdate(ctx, uid));
}

export async function createEvent(ctx: WriteContext, advisory: Uid, event: AdvisoryEvent): Promise<AdvisoryEvent> {
  refuse(eventProblems(event, 'advisory_event'));
  if (isReviewed(event)) requireCanReview(ctx.caller, advisory);
  const before = await findForUpdate(ctx, advisory);
  const created = newEvent(ctx, advisory, event);
  await putEvents(ctx, before, [...before.message.events, created]);
  return created;
}

/** Replaces an event. A caller that sets a reviewed state needs the capability for reviews, unless nothing changes. */
export async function updateEvent(ctx: WriteContext, replacement: AdvisoryEvent): Promise<AdvisoryEvent> {
  refuse(eventProblems(replacement, 'advisory_event'));
  const uid = parseUid('uid', replacement.uid);
  const before = await findForUpdate(ctx, parentOf(uid));
  const { events } = before.message;
  const stored = events.find((each) => each.uid === uid);
  if (!stored) throw notFound('advisory event', uid);
  const createTime = timestampFromMs(timeOf(replacement.createTime ? replacement : stored));
  const times = { createTime, ...(stored.updateTime && { updateTime: stored.updateTime }) };
  const event = { ...withReview(ctx, replacement), uid, ...times };
  if (equals(AdvisoryEventSchema, event, stored)) return stored;
  if (isReviewed(event)) requireCanReview(ctx.caller, uid);
  const changed = { ...event, updateTime: timestampFromMs(ctx.now) };
  await putEvents(
    ctx,
    before,
    events.map((each) => (each === stored ? changed : each)),
  );
  return changed;
}

async function findForUpdate({ db }: WriteContext, uid: string): Promise<Stored<Advisory>> {
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

function newEvent(ctx: WriteContext, advisory: Uid, event: AdvisoryEvent): AdvisoryEvent {
  const time = timestampFromMs(ctx.now);
  const createTime = event.createTime ? timestampFromMs(timeOf(event)) : time;
  const author = event.author || ctx.caller.uid;
  return { ...withReview(ctx, event), author, uid: newUid(advisory), createTime, updateTime: time };
}

/** Sets the caller as the reviewer of a reviewed event that names none. */
function withReview({ caller }: WriteContext, event: AdvisoryEvent): AdvisoryEvent {
  const reviewState = event.reviewState || ReviewState.PENDING;
  const reviewer = event.reviewer || (isReviewed(event) ? caller.uid : '');
  return { ...event, reviewer, reviewState };
}

const oldestFirst = (events: readonly AdvisoryEvent[]): AdvisoryEvent[] =>
  events.toSorted((a, b) => timeOf(a) - timeOf(b));

const timeOf = ({ createTime }: AdvisoryEvent): number => (createTime ? timestampMs(createTime) : 0);
