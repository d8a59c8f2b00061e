import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMetrics } from './metrics.ts';
import { version } from './version.ts';

test('requests are counted by method, wire and code, and timed by method and wire', async () => {
  const metrics = createMetrics();
  metrics.observeRequest('a.B/Get', 'rest', 'OK', 0.003);
  metrics.observeRequest('a.B/Get', 'rest', 'OK', 0.2);
  metrics.observeRequest('a.B/Get', 'grpc', 'NOT_FOUND', 0.003);
  const text = await metrics.text();
  assert.match(text, /^wharf_requests_total\{method="a\.B\/Get",wire="rest",code="OK"\} 2$/m);
  assert.match(text, /^wharf_requests_total\{method="a\.B\/Get",wire="grpc",code="NOT_FOUND"\} 1$/m);
  assert.match(text, /^wharf_request_duration_seconds_bucket\{le="0\.005",method="a\.B\/Get",wire="rest"\} 1$/m);
  assert.match(text, /^wharf_request_duration_seconds_sum\{method="a\.B\/Get",wire="rest"\} 0\.203$/m);
});

test('requests in flight go up and down', async () => {
  const { inFlight, text } = createMetrics();
  assert.match(await text(), /^wharf_requests_in_flight 0$/m);
  inFlight.enter();
  inFlight.enter();
  inFlight.leave();
  assert.match(await text(), /^wharf_requests_in_flight 1$/m);
});

test('database operations are counted by outcome and timed', async () => {
  const metrics = createMetrics();
  metrics.observeDatabase('read', 'ok', 0.00002);
  metrics.observeDatabase('write', 'error', 0.002);
  const text = await metrics.text();
  assert.match(text, /^wharf_database_operations_total\{operation="read",outcome="ok"\} 1$/m);
  assert.match(text, /^wharf_database_operations_total\{operation="write",outcome="error"\} 1$/m);
  assert.match(text, /^wharf_database_operation_duration_seconds_count\{operation="write"\} 1$/m);
});

test('the process and the build are described, each metric once', async () => {
  const text = await createMetrics().text();
  assert.match(text, /^process_resident_memory_bytes \d/m);
  assert.match(text, /^nodejs_eventloop_lag_seconds /m);
  assert.ok(text.includes(`wharf_build_info{version="${version}",node="${process.versions.node}"} 1`));
  const names = text.match(/^# TYPE \S+/gm) ?? [];
  assert.equal(new Set(names).size, names.length);
});

test('servers in one process count for themselves', async () => {
  const [one, two] = [createMetrics(), createMetrics()];
  one.observeRequest('a.B/Get', 'rest', 'OK', 0.001);
  assert.match(await one.text(), /^wharf_requests_total\{/m);
  assert.doesNotMatch(await two.text(), /^wharf_requests_total\{/m);
});

test('attempts to deliver are counted by outcome, and pending deliveries on each read', async () => {
  const { delivery, text } = createMetrics();
  delivery.observe('delivered', 0.01);
  delivery.observe('pending', 0.2);
  delivery.observeLag(0.02);
  delivery.readWaitingFrom(async () => 7);
  const shown = await text();
  assert.match(shown, /^wharf_delivery_attempts_total\{outcome="delivered"\} 1$/m);
  assert.match(shown, /^wharf_delivery_attempts_total\{outcome="retried"\} 1$/m);
  assert.match(shown, /^wharf_delivery_duration_seconds_count 2$/m);
  assert.match(shown, /^wharf_delivery_lag_seconds_count 1$/m);
  assert.match(shown, /^wharf_deliveries_waiting 7$/m);
});
