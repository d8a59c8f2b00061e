import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SpanExporter } from '@opentelemetry/sdk-trace';
import { withExportReports } from './export-reports.ts';

test('failures are logged once and then every ten minutes, and so is their end', () => {
  let time = 0;
  let isFailing = true;
  const lines: string[] = [];
  const counts = { exported: 0, lost: 0 };
  const inner: SpanExporter = {
    export: (_spans, done) => done(isFailing ? { code: 1, error: new Error('connect ECONNREFUSED') } : { code: 0 }),
    shutdown: async () => {},
  };
  const exporter = withExportReports(inner, {
    log: {
      info: (fields, message) => lines.push(`${message} ${JSON.stringify(fields)}`),
      warn: (fields, message) => lines.push(`${message} ${JSON.stringify(fields)}`),
    },
    url: 'http://user:secret@127.0.0.1:4318/v1/traces',
    onExport() {},
    countSpans: (outcome, count) => {
      counts[outcome] += count;
    },
    now: () => time,
  });
  const exportTwo = () => exporter.export([{}, {}] as never, () => {});

  for (let i = 0; i < 100; i++) exportTwo();
  assert.deepEqual(lines, [
    'cannot export traces {"collector":"http://127.0.0.1:4318","lost":2,"error":"connect ECONNREFUSED"}',
  ]);
  time += 10 * 60 * 1000;
  exportTwo();
  assert.equal(lines.length, 2);
  assert.match(lines[1] ?? '', /"lost":202/);
  isFailing = false;
  exportTwo();
  exportTwo();
  assert.equal(lines.length, 3);
  assert.match(lines[2] ?? '', /^exports traces again/);
  assert.deepEqual(counts, { exported: 4, lost: 202 });
});
