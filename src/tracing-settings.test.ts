import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigError } from './config-values.ts';
import { loadTracingSettings } from './tracing-settings.ts';

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };

test('traces are exported only if an endpoint is set', () => {
  assert.equal(loadTracingSettings({}), undefined);
  assert.equal(loadTracingSettings({ OTEL_SERVICE_NAME: 'x', OTEL_EXPORTER_OTLP_ENDPOINT: '' }), undefined);
  assert.equal(loadTracingSettings({ ...ENDPOINT, OTEL_SDK_DISABLED: 'true' }), undefined);
  assert.equal(loadTracingSettings({ ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' }), undefined);
});

test('the defaults are those of OpenTelemetry', () => {
  assert.deepEqual(loadTracingSettings(ENDPOINT), {
    url: 'http://collector:4318/v1/traces',
    headers: {},
    resourceAttributes: { 'service.name': 'wharfinger' },
    sampler: { isParentBased: true, ratio: 1 },
    exportDelayMs: 5000,
  });
});

test('every variable is read', () => {
  const settings = loadTracingSettings({
    OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector/base/',
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20a=b, x-tenant=1',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test,service.name=other',
    OTEL_SERVICE_NAME: 'wharf-eu',
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.25',
    OTEL_BSP_SCHEDULE_DELAY: '100',
  });
  assert.deepEqual(settings, {
    url: 'https://collector/base/v1/traces',
    headers: { authorization: 'Bearer a=b', 'x-tenant': '1' },
    resourceAttributes: { 'deployment.environment.name': 'test', 'service.name': 'wharf-eu' },
    sampler: { isParentBased: true, ratio: 0.25 },
    exportDelayMs: 100,
  });
});

test('the variables for traces override those for all signals', () => {
  const settings = loadTracingSettings({
    ...ENDPOINT,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://traces:4318/custom',
    OTEL_EXPORTER_OTLP_HEADERS: 'a=1',
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'b=2',
  });
  assert.equal(settings?.url, 'http://traces:4318/custom');
  assert.deepEqual(settings?.headers, { b: '2' });
});

const refused: [variable: string, value: string, message: RegExp][] = [
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318', /OTEL_EXPORTER_OTLP_ENDPOINT="collector:4318".*URL such as/],
  ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc', /only http\/protobuf is supported/],
  ['OTEL_TRACES_SAMPLER', 'toString', /use one of always_on/],
  ['OTEL_RESOURCE_ATTRIBUTES', 'no-value', /key=value/],
  ['OTEL_BSP_SCHEDULE_DELAY', '1s', /milliseconds/],
];
for (const [variable, value, message] of refused) {
  test(`${variable}=${value} is refused with what would be right`, () => {
    assert.throws(
      () => loadTracingSettings({ ...ENDPOINT, [variable]: value }),
      (error) => {
        assert.ok(error instanceof ConfigError);
        assert.match(error.message, message);
        return true;
      },
    );
  });
}

test('a ratio outside of 0 to 1 is refused', () => {
  for (const ratio of ['-1', '1.5', 'half', '1e-3x']) {
    const env = { ...ENDPOINT, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: ratio };
    assert.throws(() => loadTracingSettings(env), /OTEL_TRACES_SAMPLER_ARG/);
  }
});

test('a refusal of headers does not repeat them', () => {
  const env = { ...ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS: 'secret-without-name' };
  assert.throws(
    () => loadTracingSettings(env),
    (error: Error) => !error.message.includes('secret-without-name') && /OTLP_HEADERS/.test(error.message),
  );
});
