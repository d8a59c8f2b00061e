import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { newUid, parentOf, ROOT } from '../../base/uid.ts';
import {
  type AdvisoryEvent,
  AdvisoryEventSchema,
  ReviewState,
} from '../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { mergeEvents } from './merge-events.ts';

const advisory = newUid(newUid(ROOT));

const event = (ms: number | undefined, init: MessageInitShape<typeof AdvisoryEventSchema>): AdvisoryEvent =>
  create(AdvisoryEventSchema, { ...init, ...(ms === undefined ? {} : { createTime: timestampFromMs(ms) }) });

const fixed = (fixedVersion: string) => ({ case: 'fixed' as const, value: { fixedVersion } });
const noted = (note: string) => ({ case: 'fixNotPlanned' as const, value: { note } });

test('new events get a uid below the advisory and times, and stand oldest first', () => {
  const given = [
    event(2000, { type: fixed('1') }),
    event(1000, { type: noted('no') }),
    event(undefined, { type: noted('x') }),
  ];
  const merged = mergeEvents(advisory, [], given, 1500);
  assert.deepEqual(
    merged.map(({ type, createTime, updateTime }) => [type.case, timeOf(createTime), timeOf(updateTime)]),
    [
      ['fixNotPlanned', 1000, 1500],
      ['fixNotPlanned', 1500, 1500],
      ['fixed', 2000, 1500],
    ],
  );
  for (const { uid } of merged) assert.equal(parentOf(uid), advisory);
  assert.equal(new Set(merged.map(({ uid }) => uid)).size, 3);
  assert.ok(
    given.every(({ uid }) => uid === ''),
    'what was given is left alone',
  );
});

test('the same events again change nothing, with their time or without', () => {
  const given = [event(1000, { type: fixed('1'), author: 'ann' }), event(2000, { type: noted('no'), author: 'ann' })];
  const merged = mergeEvents(advisory, [], [...given, ...given], 5000);
  assert.equal(merged.length, 2);
  assert.deepEqual(mergeEvents(advisory, merged, given, 9000), merged);
  assert.deepEqual(
    mergeEvents(advisory, merged, [event(undefined, { type: fixed('1'), author: 'ann' })], 9000),
    merged,
  );
});

test('another time, type or content is another event, and what is not given stays', () => {
  const known = mergeEvents(advisory, [], [event(1000, { type: fixed('1') })], 5000);
  for (const other of [
    event(1001, { type: fixed('1') }),
    event(1000, { type: fixed('2') }),
    event(1000, { type: noted('1') }),
  ]) {
    const merged = mergeEvents(advisory, known, [other], 6000);
    assert.equal(merged.length, 2);
    assert.deepEqual(merged[0], known[0]);
  }
});

test('who reviewed an event may change; it stays the same event', () => {
  const known = mergeEvents(advisory, [], [event(1000, { type: fixed('1'), reviewState: ReviewState.PENDING })], 5000);
  const given = event(1000, { type: fixed('1'), reviewState: ReviewState.APPROVED, reviewer: 'bob' });
  const [merged, another] = mergeEvents(advisory, known, [given], 6000);
  assert.equal(another, undefined);
  assert.equal(merged?.uid, known[0]?.uid);
  assert.deepEqual(merged?.createTime, known[0]?.createTime);
  assert.equal(timeOf(merged?.updateTime), 6000);
  assert.equal(merged?.reviewer, 'bob');
});

const timeOf = (time: AdvisoryEvent['createTime']): number | undefined => time && timestampMs(time);
