import fc from 'fast-check';
import { omitEmpty } from '../strict-json.ts';
import { ADVISORY_ID_ALPHABET, formatAdvisoryId } from './advisory-id.ts';
import type { AdvisoryJson, EventJson, EventType } from './advisory-json.ts';

const text = fc.oneof(
  fc.constantFrom('', 'note', '1.10', 'true', 'null', '~', '- x', 'a: b', '"', "it's", ' padded ', '#', '2024-01-01'),
  fc.string({ maxLength: 12 }),
  fc.string({ unit: 'binary', maxLength: 8 }),
  fc.constant('several\n  lines\n\nof text\n'),
);
const nonEmptyText = text.filter((value) => value !== '');
const time = fc
  .date({ min: new Date('0001-01-01T00:00:00Z'), max: new Date('9999-12-31T00:00:00Z'), noInvalidDate: true })
  .map((date) => date.toISOString());

const advisoryId = fc
  .array(fc.nat(ADVISORY_ID_ALPHABET.length - 1), { minLength: 12, maxLength: 12 })
  .map((indexes) => formatAdvisoryId((position) => indexes[position] ?? 0));

const note = fc.record({ note: text }).map(omitEmpty);

const falsePositiveType = fc.constantFrom(
  ...['', 'TYPE_VULNERABILITY_RECORD_ANALYSIS_CONTESTED', 'TYPE_COMPONENT_VULNERABILITY_MISMATCH'],
  ...['TYPE_VULNERABLE_CODE_VERSION_NOT_USED', 'TYPE_VULNERABLE_CODE_NOT_INCLUDED_IN_PACKAGE'],
  ...['TYPE_INLINE_MITIGATIONS_EXIST', 'TYPE_VULNERABLE_CODE_NOT_IN_EXECUTION_PATH'],
);

const scan = fc.record({
  scanner: text,
  component: text,
  componentType: text,
  componentLocation: text,
  subpackage: text,
});

const eventType: fc.Arbitrary<EventType> = fc.oneof(
  fc.constant({ detection: { manual: {} } }),
  scan.map((scanv1) => ({ detection: { scanv1: omitEmpty({ ...scanv1, artifactVersion: scanv1.scanner }) } })),
  fc.record({ cpeSearched: text, cpeFound: text }).map((nvdapi) => ({ detection: { nvdapi: omitEmpty(nvdapi) } })),
  fc.record({ fixedVersion: text, note: text }).map((fixed) => ({ fixed: omitEmpty(fixed) })),
  fc
    .record({ type: falsePositiveType, note: text })
    .map((determination) => ({ falsePositiveDetermination: omitEmpty(determination) })),
  fc
    .record({ patchedVersions: fc.array(nonEmptyText, { maxLength: 2 }), note: text })
    .map((patched) => ({ patched: omitEmpty(patched) })),
  ...(['analysisNotPlanned', 'fixNotPlanned', 'pendingUpstreamFix', 'truePositiveDetermination'] as const).map((name) =>
    note.map((value) => ({ [name]: value })),
  ),
);

const event: fc.Arbitrary<EventJson> = fc
  .record({
    type: eventType,
    createTime: time,
    findings: fc.uint8Array({ maxLength: 6 }).map((bytes) => Buffer.from(bytes).toString('base64')),
    author: text,
    reviewer: text,
    reviewState: fc.constantFrom('', 'REVIEW_STATE_PENDING', 'REVIEW_STATE_APPROVED', 'REVIEW_STATE_REJECTED'),
    issue: text,
  })
  .map(({ type, ...rest }) => ({ ...omitEmpty(rest), ...type }));

const sortByTime = (events: readonly EventJson[]): EventJson[] =>
  events.toSorted(({ createTime: a = '' }, { createTime: b = '' }) => (a < b ? -1 : a > b ? 1 : 0));

/** Advisories of all shapes that the API allows, without the fields that the server sets. */
export const arbitraryAdvisory: fc.Arbitrary<AdvisoryJson> = fc
  .record({
    advisoryId,
    deleteTime: fc.option(time, { nil: '' }),
    author: text,
    artifactName: nonEmptyText,
    artifactType: fc.oneof(fc.constantFrom('apk', 'golang', 'maven'), text),
    artifactArchitecture: text,
    componentName: text,
    componentLocation: text,
    componentType: fc.oneof(fc.constantFrom('Go', 'go-module', 'Debian:12'), text),
    aliases: fc.uniqueArray(fc.oneof(nonEmptyText, advisoryId), { maxLength: 3 }),
    events: fc.array(event, { maxLength: 4 }).map(sortByTime),
    legacyAdvisoryId: text,
    severities: fc.array(
      fc.constantFrom(
        { type: 'TYPE_CVSS_V3', score: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H' },
        { type: 'TYPE_CVSS_V2', score: 'not a vector' },
      ),
      { maxLength: 2 },
    ),
  })
  .map(omitEmpty);
