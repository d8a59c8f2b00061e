import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, equals, fromBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { encodeInSlices } from '../binary-slices.ts';
import { methods } from '../contract.testing.ts';
import { ListDocumentsResponseSchema } from '../gen/chainguard/platform/advisory/v2/advisory_pb.js';
import { type Advisory, AdvisorySchema } from '../gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { RawVulnReportSchema } from '../gen/platform/registry/v1/vulnerabilities.platform_pb.js';
import { ReportSchema } from '../gen/wharfinger/reports/v1/reports_pb.js';
import { isLarge } from '../large-message.ts';
import { arbitraryMessage } from './arbitrary-message.testing.ts';
import { encodeJson } from './encode.ts';
import { encodeJsonLatin1 } from './encode-latin1.ts';
import { encodeJsonInSlices, encodeJsonLatin1InSlices } from './encode-slices.ts';

const outputs = [...new Set(methods.map(({ desc }) => desc.output))].filter(({ fields }) => fields.length > 0);

test('a message is encoded in slices as it is at once', async () => {
  const message = fc.constantFrom(...outputs).chain((desc) => arbitraryMessage(desc).map((value) => ({ desc, value })));
  await fc.assert(
    fc.asyncProperty(message, async ({ desc, value }) => {
      for (const form of ['v2', 'v1'] as const) {
        const json = encodeJson(desc, value, form);
        assert.equal(await encodeJsonInSlices(desc, value, form), json);
        assert.equal(await encodeJsonLatin1InSlices(desc, value, form), encodeJsonLatin1(desc, value, form));
        assert.equal(Buffer.from(encodeJsonLatin1(desc, value, form), 'latin1').toString(), json);
      }
      assert.ok(equals(desc, fromBinary(desc, await encodeInSlices(desc, value)), value));
    }),
    { seed: 14, numRuns: 300 },
  );
});

test('fields that are undefined are left out', async () => {
  const { legacyAdvisoryId: _, ...advisory } = create(AdvisorySchema, { advisoryId: 'a', events: [{}] });
  const copy = { ...advisory } as Advisory;
  assert.ok(!isLarge(AdvisorySchema, copy));
  assert.equal(await encodeJsonInSlices(AdvisorySchema, copy), encodeJson(AdvisorySchema, copy));
});

test('long lists at any depth and long texts are encoded in slices', async () => {
  const finding = { id: 'CVE-2026-1 é', aliases: ['x'], cvss: [{ version: '3.1' }] };
  const report = create(ReportSchema, { findings: Array(3000).fill(finding) });
  const advisories = Array(2000).fill({ id: 'a', aliases: ['b'] });
  const documents = create(ListDocumentsResponseSchema, { documents: [{ id: 'one', advisories }, { id: 'two' }] });
  const raw = create(RawVulnReportSchema, { rawReport: 'a"\n😀é\ud800'.repeat(200_000) });
  for (const [desc, message] of [
    [ReportSchema, report],
    [ListDocumentsResponseSchema, documents],
    [RawVulnReportSchema, raw],
  ] as const) {
    assert.ok(isLarge(desc, message), desc.typeName);
    assert.equal(await encodeJsonInSlices(desc, message), encodeJson(desc, message));
    assert.equal(await encodeJsonLatin1InSlices(desc, message), encodeJsonLatin1(desc, message));
  }
  assert.ok(!isLarge(ReportSchema, create(ReportSchema, { findings: Array(100).fill(finding) })));
  assert.ok(equals(ReportSchema, fromBinary(ReportSchema, await encodeInSlices(ReportSchema, report)), report));
});
