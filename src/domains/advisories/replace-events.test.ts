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

test('new events get times and a uid below the advisory, and are sorted oldest first', () => {
  const imported = [
    event(2000, { type: fixed('1') }),
    event(1000, { type: noted('no') }),
    event(undefined, { type: noted('x') }),
  ];
  const events = replaceEvents(advisory, [], imported, 1500);
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
    imported.every(({ uid }) => uid === ''),
    'the imported events are not modified',
  );
});

test('removes stored events that are not imported, and stores repeated ones once', () => {
  const [first, second] = [event(1000, { type: fixed('1') }), event(2000, { type: noted('no') })];
  const storedEvents = replaceEvents(advisory, [], [first, second, first], 5000);
  assert.equal(storedEvents.length, 2);
  assert.deepEqual(replaceEvents(advisory, storedEvents, [second], 6000), [storedEvents[1]]);
  assert.deepEqual(replaceEvents(advisory, storedEvents, [], 6000), []);
});

test('an event without a time matches one with the same content at any time', () => {
  const storedEvents = replaceEvents(advisory, [], [event(1000, { type: fixed('1') })], 5000);
  assert.deepEqual(replaceEvents(advisory, storedEvents, [event(undefined, { type: fixed('1') })], 9000), storedEvents);
});

test('author and reviewer of an event stay, unless the record has others', () => {
  const reviewed = {
    author: 'ann',
    reviewer: 'bob',
    reviewState: ReviewState.APPROVED,
    issue: 'https://issues.test/1',
  };
  const findings = new Uint8Array([1, 2]);
  const storedEvents = replaceEvents(advisory, [], [event(1000, { type: fixed('1'), ...reviewed, findings })], 5000);
  assert.deepEqual(replaceEvents(advisory, storedEvents, [event(1000, { type: fixed('1') })], 6000), storedEvents);

  const renamed = event(1000, { type: fixed('1'), author: 'eve' });
  const [changed, another] = replaceEvents(advisory, storedEvents, [renamed], 6000);
  assert.equal(another, undefined);
  assert.deepEqual(changed, { ...storedEvents[0], author: 'eve', updateTime: timestampFromMs(6000) });
});

test('a stored review takes precedence, and an import can review a pending event', () => {
  const { PENDING, APPROVED, REJECTED } = ReviewState;
  const after = (stored: ReviewState, imported: ReviewState) => {
    const storedEvents = replaceEvents(advisory, [], [event(1000, { type: fixed('1'), reviewState: stored })], 5000);
    return replaceEvents(advisory, storedEvents, [event(1000, { type: fixed('1'), reviewState: imported })], 6000)[0]
      ?.reviewState;
  };
  assert.equal(after(REJECTED, APPROVED), REJECTED);
  assert.equal(after(APPROVED, PENDING), APPROVED);
  assert.equal(after(PENDING, APPROVED), APPROVED);
  assert.equal(after(PENDING, ReviewState.UNSPECIFIED), PENDING);
});

test('an event with other content at the same time is rewritten, and loses its review', () => {
  const reviewed = { author: 'ann', reviewer: 'bob', reviewState: ReviewState.APPROVED };
  const storedEvents = replaceEvents(
    advisory,
    [],
    [event(1000, { type: fixed('1'), ...reviewed }), event(1000, { type: fixed('2'), ...reviewed })],
    5000,
  );
  const imported = [event(1000, { type: fixed('3') }), event(1000, { type: fixed('2') })];
  const events = replaceEvents(advisory, storedEvents, imported, 6000);
  assert.deepEqual(events[1], storedEvents[1], 'the unchanged event is not taken for the rewritten one');
  assert.deepEqual(events[0], {
    ...storedEvents[0],
    type: { case: 'fixed', value: create(AdvisoryEventSchema, imported[0]).type.value },
    reviewer: '',
    reviewState: ReviewState.UNSPECIFIED,
    updateTime: timestampFromMs(6000),
  });
});

test('an event with another time or type is a new event', () => {
  const storedEvents = replaceEvents(advisory, [], [event(1000, { type: fixed('1') })], 5000);
  for (const other of [event(1001, { type: fixed('1') }), event(1000, { type: noted('1') })]) {
    const [only, another] = replaceEvents(advisory, storedEvents, [other], 6000);
    assert.equal(another, undefined);
    assert.notEqual(only?.uid, storedEvents[0]?.uid);
  }
});

test('any stored events: the result has the contents of the record, and importing it again changes nothing', () => {
  const arbitrary = fc.array(
    fc.record({
      ms: fc.option(fc.constantFrom(1000, 2000, 3000), { nil: undefined }),
      type: fc.oneof(fc.constantFrom('1', '2').map(fixed), fc.constantFrom('1', '2').map(noted)),
      author: fc.constantFrom('', 'ann', 'bob'),
    }),
    { maxLength: 6 },
  );
  const events = arbitrary.map((all) => all.map(({ ms, ...init }) => event(ms, init)));
  const contentsOf = (all: readonly AdvisoryEvent[]) => new Set(all.map(({ type }) => JSON.stringify(type)));
  fc.assert(
    fc.property(events, events, (before, imported) => {
      const storedEvents = replaceEvents(advisory, [], before, 5000);
      const after = replaceEvents(advisory, storedEvents, imported, 6000);
      assert.deepEqual(contentsOf(after), contentsOf(imported));
      assert.deepEqual(replaceEvents(advisory, after, imported, 7000), after);
      assert.equal(new Set(after.map(({ uid }) => uid)).size, after.length);
    }),
    { seed: 7, numRuns: 500 },
  );
});
