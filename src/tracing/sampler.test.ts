import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { IncomingTrace } from '../base/tracing.ts';
import { createSampler } from './sampler.ts';

const parent = (fields: Partial<IncomingTrace>): IncomingTrace => ({
  traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
  spanId: '00f067aa0ba902b7',
  isSampled: true,
  isTrusted: true,
  ...fields,
});

test('a trusted sender decides', () => {
  const { isCallRecorded } = createSampler({ isParentBased: true, ratio: 0 });
  assert.equal(isCallRecorded(parent({ isSampled: true })), true);
  assert.equal(isCallRecorded(parent({ isSampled: false })), false);
  assert.equal(isCallRecorded(undefined), false);
});

test('any other sender decides nothing, neither by its flag nor by its trace id', () => {
  let random = 0.5;
  const { isCallRecorded } = createSampler({ isParentBased: true, ratio: 0.1 }, () => random);
  const chosen = parent({ isTrusted: false, traceId: `${'a'.repeat(20)}${'0'.repeat(12)}` });
  assert.equal(isCallRecorded(chosen), false);
  random = 0.05;
  assert.equal(isCallRecorded(chosen), true);
  assert.equal(isCallRecorded(parent({ isTrusted: false, isSampled: false })), true);
});

test('by ratio, all servers record the same traces of a trusted sender', () => {
  const { isCallRecorded } = createSampler({ isParentBased: false, ratio: 0.5 }, () => assert.fail());
  assert.equal(isCallRecorded(parent({ traceId: `${'a'.repeat(20)}7fffffffffff` })), true);
  assert.equal(isCallRecorded(parent({ traceId: `${'a'.repeat(20)}800000000000` })), false);
});
