import { type DetectionJson, type EventJson, type EventType, PUBLISHED } from '../advisory.ts';
import { damaged, type Fields, fieldsOf, filled, givenText, isFields, textOf, textsOf, timeOf } from '../reading.ts';
import { apiName, falsePositiveTypes, isNoteType, noteTypes, nvdFields, scanFields } from './event-names.ts';

export function readEvent(value: unknown, field: string): EventJson {
  const given = fieldsOf(value, field);
  const type = givenText(given.type, `${field}.type`);
  return {
    createTime: timeOf(given.timestamp, `${field}.timestamp`),
    reviewState: PUBLISHED,
    ...readType(type, given.data, field),
  };
}

function readType(type: string, data: unknown, field: string): EventType {
  // Where there is only a note, it may be left out.
  if (isNoteType(type)) return { [noteTypes[type]]: noteOf(data, field) };
  const given = fieldsOf(data, `${field}.data`);
  switch (type) {
    case 'detection':
      return { detection: readDetection(given, `${field}.data`) };
    case 'fixed':
      return { fixed: { fixedVersion: givenText(given['fixed-version'], `${field}.data.fixed-version`) } };
    case 'false-positive-determination':
      return { falsePositiveDetermination: { type: whyNot(given.type, field), ...noteOf(given, field) } };
    case 'patched': {
      const patchedVersions = textsOf(given['patched-versions'], `${field}.data.patched-versions`);
      return { patched: filled({ patchedVersions, ...noteOf(given, field) }) };
    }
  }
  throw damaged(`${field}.type`, `is not a type of event: ${JSON.stringify(type.slice(0, 100))}`);
}

function noteOf(data: unknown, field: string): { note?: string } {
  const note = isFields(data) ? textOf(data.note, `${field}.data.note`) : textOf(data, `${field}.data`);
  return note === '' ? {} : { note };
}

function whyNot(value: unknown, field: string): string {
  const type = givenText(value, `${field}.data.type`);
  if (falsePositiveTypes.some((known) => known === type)) return apiName(type);
  throw damaged(`${field}.data.type`, `must be one of ${falsePositiveTypes.join(', ')}`);
}

function readDetection({ type, data }: Fields, field: string): DetectionJson {
  switch (type) {
    case 'manual':
      return { manual: {} };
    case 'scan/v1':
      return { scanv1: renamed(fieldsOf(data, `${field}.data`), scanFields, `${field}.data`) };
    case 'nvdapi':
      return { nvdapi: renamed(fieldsOf(data, `${field}.data`), nvdFields, `${field}.data`) };
  }
  throw damaged(`${field}.type`, 'must be scan/v1, nvdapi or manual');
}

const renamed = (data: Fields, names: Readonly<Record<string, string>>, field: string): Record<string, string> =>
  filled(
    Object.fromEntries(
      Object.entries(names).map(([ours, theirs]) => [ours, textOf(data[theirs], `${field}.${theirs}`)]),
    ),
  );
