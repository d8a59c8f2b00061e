import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { create } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { asBytes, grypeReport, trivyReport } from '../../../test/support/scans.ts';
import { ImportReportsRequestSchema } from '../../contract/gen/wharfinger/imports/v1/reports_pb.js';
import { MalformedFieldError } from '../../formats/strict-json.ts';
import { reportImportOperations } from './import-reports.ts';
import { MAX_REPORT_BYTES, prepareReport, unpackReport } from './prepare-report.ts';
import { decodeVulnerabilities } from './vulnerability.ts';

const NOW = Date.parse('2026-08-10T00:00:00Z');
const found = [{ id: 'GHSA-1', aliases: ['CVE-2026-1'], severity: 'HIGH', fixed: '2' }, { id: 'CVE-2026-2' }];
const samples = [grypeReport({ findings: found }), trivyReport({ findings: found })];

/** Whether a report is parsed, or refused with a reason. */
async function isParsedOrRefused(content: Uint8Array): Promise<boolean> {
  try {
    const { message, columns } = await prepareReport(await unpackReport(content), NOW);
    decodeVulnerabilities(columns.vulnerabilities);
    return message.counts !== undefined;
  } catch (error) {
    return error instanceof MalformedFieldError && error.reason !== '';
  }
}

test('damaged bytes are parsed or refused', async () => {
  const sample = fc.constantFrom(...samples.flatMap((one) => [asBytes(one), gzipSync(asBytes(one))]));
  const change = fc.record({ at: fc.nat(), byte: fc.nat(255), length: fc.nat(20) });
  await fc.assert(
    fc.asyncProperty(
      sample,
      fc.array(change, { minLength: 1, maxLength: 4 }),
      fc.boolean(),
      async (whole, changes, cut) => {
        const bytes = Buffer.from(whole);
        for (const { at, byte, length } of changes) {
          const start = at % bytes.length;
          bytes.subarray(start, start + length).fill(byte);
        }
        return isParsedOrRefused(cut ? bytes.subarray(0, (changes[0]?.at ?? 0) % bytes.length) : bytes);
      },
    ),
    { numRuns: 300 },
  );
});

test('wrong values in any field are parsed or refused', async () => {
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.constantFrom('', '\ud800', '\0', 1e308, '9999-99-99T00:00:00Z'),
  );
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...samples), fc.nat(), value, async (sample, n, wrong) => {
      const copy = structuredClone(sample) as object;
      const fields = fieldsIn(copy);
      const { object, key } = fields[n % fields.length] ?? assert.fail();
      object[key] = wrong;
      return isParsedOrRefused(asBytes(copy));
    }),
    { numRuns: 500 },
  );
});

interface FieldOfObject {
  readonly object: Record<string, unknown>;
  readonly key: string;
}

const fieldsIn = (value: unknown): FieldOfObject[] =>
  typeof value === 'object' && value !== null
    ? Object.entries(value).flatMap(([key, inner]) => [
        { object: value as Record<string, unknown>, key },
        ...fieldsIn(inner),
      ])
    : [];

test('a report has the same content digest with and without gzip or a line break at its end', async () => {
  const bytes = asBytes(samples[0]);
  const copies = [bytes, gzipSync(bytes), Buffer.concat([bytes, Buffer.from('\r\n')])];
  const digests = await Promise.all(
    copies.map(async (copy) => (await prepareReport(await unpackReport(copy), NOW)).message.contentDigest),
  );
  assert.equal(new Set(digests).size, 1);
});

test('a request can have four reports of the maximum size, however small they are compressed', async () => {
  const [operation] = Object.values(reportImportOperations);
  assert.ok(operation?.mode === 'write' && operation.prepare);
  const ctx = { now: NOW } as Parameters<typeof operation.prepare>[0];
  // Not valid UTF-8, so it is refused quickly.
  const largest = gzipSync(Buffer.alloc(MAX_REPORT_BYTES, 0xff));
  const prepare = (count: number) =>
    operation.prepare?.(ctx, create(ImportReportsRequestSchema, { reports: Array(count).fill({ content: largest }) }));
  assert.equal(((await prepare(4)) as readonly unknown[]).length, 4);
  await assert.rejects(async () => prepare(5), /reports: must have at most 134217728 bytes, unpacked/);
});
