import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { newUid, parentOf, ROOT } from '../../base/uid.ts';
import {
  type AdvisoryEvent,
  AdvisoryEventSchema,
  ReviewState,
} from '../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { replaceEvents } from './replace-events.ts';

const advisory = newUid(newUid(ROOT));

const event = (ms: number | undefined, init: MessageInitShape<typeof AdvisoryEventSchema>): AdvisoryEvent =>
  create(AdvisoryEventSchema, { ...init, ...(ms === undefined ? {} : { createTime: timestampFromMs(ms) }) });

const fixed = (fixedVersion: string) => ({ case: 'fixed' as const, value: { fixedVersion } });
const noted = (note: string) => ({ case: 'fixNotPlanned' as const, value: { note } });
const timeOf = (time: AdvisoryEvent['createTime']): number | undefined => time && timestampMs(time);

test('new events get a uid below the advisory and times, and stand oldest first', () => {
  const given = [
    event(2000, { type: fixed('1') }),
    event(1000, { type: noted('no') }),
    event(undefined, { type: noted('x') }),
  ];
  const events = replaceEvents(advisory, [], given, 1500);
  assert.deepEqual(
    events.map(({ type, createTime, updateTime }) => [type.case, timeOf(createTime), timeOf(updateTime)]),
    [
      ['fixNotPlanned', 1000, 1500],
      ['fixNotPlanned', 1500, 1500],
      ['fixed', 2000, 1500],
    ],
  );
  for (const { uid } of events) assert.equal(parentOf(uid), advisory);
  assert.equal(new Set(events.map(({ uid }) => uid)).size, 3);
  assert.ok(
    given.every(({ uid }) => uid === ''),
    'what was given is left alone',
  );
});

test('what is not given goes, and what is given twice is there once', () => {
  const [first, second] = [event(1000, { type: fixed('1') }), event(2000, { type: noted('no') })];
  const known = replaceEvents(advisory, [], [first, second, first], 5000);
  assert.equal(known.length, 2);
  assert.deepEqual(replaceEvents(advisory, known, [second], 6000), [known[1]]);
  assert.deepEqual(replaceEvents(advisory, known, [], 6000), []);
});

test('an event without a time is the one that says the same, whenever that was', () => {
  const known = replaceEvents(advisory, [], [event(1000, { type: fixed('1') })], 5000);
  assert.deepEqual(replaceEvents(advisory, known, [event(undefined, { type: fixed('1') })], 9000), known);
});

test('who wrote and reviewed an event stays, unless the record says otherwise', () => {
  const reviewed = {
    author: 'ann',
    reviewer: 'bob',
    reviewState: ReviewState.APPROVED,
    issue: 'https://issues.test/1',
  };
  const findings = new Uint8Array([1, 2]);
  const known = replaceEvents(advisory, [], [event(1000, { type: fixed('1'), ...reviewed, findings })], 5000);
  assert.deepEqual(replaceEvents(advisory, known, [event(1000, { type: fixed('1') })], 6000), known);

  const renamed = event(1000, { type: fixed('1'), author: 'eve' });
  const [changed, another] = replaceEvents(advisory, known, [renamed], 6000);
  assert.equal(another, undefined);
  assert.deepEqual(changed, { ...known[0], author: 'eve', updateTime: timestampFromMs(6000) });
});

test('a review that was made here stands, and an event that waits for one may come reviewed', () => {
  const { PENDING, APPROVED, REJECTED } = ReviewState;
  const after = (stored: ReviewState, given: ReviewState) => {
    const known = replaceEvents(advisory, [], [event(1000, { type: fixed('1'), reviewState: stored })], 5000);
    return replaceEvents(advisory, known, [event(1000, { type: fixed('1'), reviewState: given })], 6000)[0]
      ?.reviewState;
  };
  assert.equal(after(REJECTED, APPROVED), REJECTED);
  assert.equal(after(APPROVED, PENDING), APPROVED);
  assert.equal(after(PENDING, APPROVED), APPROVED);
  assert.equal(after(PENDING, ReviewState.UNSPECIFIED), PENDING);
});

test('an event that says something else of the same time was rewritten, and must be reviewed again', () => {
  const reviewed = { author: 'ann', reviewer: 'bob', reviewState: ReviewState.APPROVED };
  const known = replaceEvents(
    advisory,
    [],
    [event(1000, { type: fixed('1'), ...reviewed }), event(1000, { type: fixed('2'), ...reviewed })],
    5000,
  );
  const given = [event(1000, { type: fixed('3') }), event(1000, { type: fixed('2') })];
  const events = replaceEvents(advisory, known, given, 6000);
  assert.deepEqual(events[1], known[1], 'the one that still says the same is not taken for the rewritten one');
  assert.deepEqual(events[0], {
    ...known[0],
    type: { case: 'fixed', value: create(AdvisoryEventSchema, given[0]).type.value },
    reviewer: '',
    reviewState: ReviewState.UNSPECIFIED,
    updateTime: timestampFromMs(6000),
  });
});

test('another time or type is another event', () => {
  const known = replaceEvents(advisory, [], [event(1000, { type: fixed('1') })], 5000);
  for (const other of [event(1001, { type: fixed('1') }), event(1000, { type: noted('1') })]) {
    const [only, another] = replaceEvents(advisory, known, [other], 6000);
    assert.equal(another, undefined);
    assert.notEqual(only?.uid, known[0]?.uid);
  }
});

test('whatever was there: the same record again changes nothing, and what is there says what the record says', () => {
  const arbitrary = fc.array(
    fc.record({
      ms: fc.option(fc.constantFrom(1000, 2000, 3000), { nil: undefined }),
      type: fc.oneof(fc.constantFrom('1', '2').map(fixed), fc.constantFrom('1', '2').map(noted)),
      author: fc.constantFrom('', 'ann', 'bob'),
    }),
    { maxLength: 6 },
  );
  const events = arbitrary.map((all) => all.map(({ ms, ...init }) => event(ms, init)));
  const says = (all: readonly AdvisoryEvent[]) => new Set(all.map(({ type }) => JSON.stringify(type)));
  fc.assert(
    fc.property(events, events, (before, given) => {
      const known = replaceEvents(advisory, [], before, 5000);
      const after = replaceEvents(advisory, known, given, 6000);
      assert.deepEqual(says(after), says(given));
      assert.deepEqual(replaceEvents(advisory, after, given, 7000), after);
      assert.equal(new Set(after.map(({ uid }) => uid)).size, after.length);
    }),
    { seed: 7, numRuns: 500 },
  );
});
