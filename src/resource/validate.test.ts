import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { ListResolvedVulnsReportsRequestSchema } from '../contract/gen/chainguard/platform/advisory/v2/advisory_pb.js';
import { AdvisorySchema } from '../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { RotateSecretRequestSchema } from '../contract/gen/wharfinger/events/v1/sinks_pb.js';
import { validate } from './validate.ts';

const FIRST = -62_135_596_800n;
const LAST = 253_402_300_799n;

test('a time that JSON cannot express is refused with its path, at any depth', () => {
  const wrong = [
    { seconds: FIRST - 1n, nanos: 0 },
    { seconds: LAST + 1n, nanos: 0 },
    { seconds: 2n ** 62n, nanos: 0 },
    { seconds: 0n, nanos: -1 },
    { seconds: 0n, nanos: 1_000_000_000 },
  ];
  for (const time of wrong) {
    const request = create(ListResolvedVulnsReportsRequestSchema, { startTime: time });
    const fields = validate(ListResolvedVulnsReportsRequestSchema, request).map(({ field }) => field);
    assert.ok(fields.includes('start_time'), String(time.seconds));
    const advisory = create(AdvisorySchema, { events: [{}, { createTime: time }] });
    const inner = validate(AdvisorySchema, advisory).map(({ field }) => field);
    assert.ok(inner.includes('events[1].create_time'), inner.join());
  }
  for (const seconds of [FIRST, 0n, LAST]) {
    const request = create(ListResolvedVulnsReportsRequestSchema, { startTime: { seconds, nanos: 999_999_999 } });
    const fields = validate(ListResolvedVulnsReportsRequestSchema, request).map(({ field }) => field);
    assert.ok(!fields.includes('start_time'), String(seconds));
  }
});

test('a duration that JSON cannot express is refused', () => {
  const problems = (seconds: bigint, nanos: number) => {
    const request = create(RotateSecretRequestSchema, { uid: 'x', overlap: { seconds, nanos } });
    return validate(RotateSecretRequestSchema, request).filter(({ field }) => field === 'overlap').length;
  };
  for (const [seconds, nanos] of [
    [5n, -1],
    [-5n, 1],
    [315_576_000_001n, 0],
    [0n, 1_000_000_000],
  ] as const) {
    assert.equal(problems(seconds, nanos), 1, `${seconds}s ${nanos}ns`);
  }
  for (const [seconds, nanos] of [
    [5n, 1],
    [-5n, -1],
    [0n, -1],
    [315_576_000_000n, 999_999_999],
  ] as const) {
    assert.equal(problems(seconds, nanos), 0, `${seconds}s ${nanos}ns`);
  }
});
