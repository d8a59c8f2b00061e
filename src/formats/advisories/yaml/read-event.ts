import { isObject, type JsonObject } from '../../lenient-json.ts';
import { malformed, omitEmpty, requireObject, requireText, requireTime, textOf, textsOf } from '../../strict-json.ts';
import { APPROVED, type DetectionJson, type EventJson, type EventType } from '../advisory-json.ts';
import { apiTypeOf, falsePositiveTypes, isNoteType, noteTypes, nvdFields, scanFields } from './event-names.ts';

export function readEvent(value: unknown, field: string): EventJson {
  const event = requireObject(value, field);
  const type = requireText(event.type, `${field}.type`);
  return {
    createTime: requireTime(event.timestamp, `${field}.timestamp`),
    reviewState: APPROVED,
    ...readType(type, event.data, field),
  };
}

function readType(type: string, data: unknown, field: string): EventType {
  // The data of these types is only a note, and optional.
  if (isNoteType(type)) return { [noteTypes[type]]: noteOf(data, field) };
  const object = requireObject(data, `${field}.data`);
  switch (type) {
    case 'detection':
      return { detection: readDetection(object, `${field}.data`) };
    case 'fixed':
      return { fixed: { fixedVersion: requireText(object['fixed-version'], `${field}.data.fixed-version`) } };
    case 'false-positive-determination':
      return {
        falsePositiveDetermination: { type: readFalsePositiveType(object.type, field), ...noteOf(object, field) },
      };
    case 'patched': {
      const patchedVersions = textsOf(object['patched-versions'], `${field}.data.patched-versions`);
      return { patched: omitEmpty({ patchedVersions, ...noteOf(object, field) }) };
    }
  }
  throw malformed(`${field}.type`, `is not an event type: ${JSON.stringify(type.slice(0, 100))}`);
}

function noteOf(data: unknown, field: string): { note?: string } {
  const note = isObject(data) ? textOf(data.note, `${field}.data.note`) : textOf(data, `${field}.data`);
  return note === '' ? {} : { note };
}

function readFalsePositiveType(value: unknown, field: string): string {
  const type = requireText(value, `${field}.data.type`);
  if (falsePositiveTypes.some((name) => name === type)) return apiTypeOf(type);
  throw malformed(`${field}.data.type`, `must be one of ${falsePositiveTypes.join(', ')}`);
}

function readDetection({ type, data }: JsonObject, field: string): DetectionJson {
  switch (type) {
    case 'manual':
      return { manual: {} };
    case 'scan/v1':
      return { scanv1: renameFields(requireObject(data, `${field}.data`), scanFields, `${field}.data`) };
    case 'nvdapi':
      return { nvdapi: renameFields(requireObject(data, `${field}.data`), nvdFields, `${field}.data`) };
  }
  throw malformed(`${field}.type`, 'must be scan/v1, nvdapi or manual');
}

const renameFields = (
  data: JsonObject,
  names: Readonly<Record<string, string>>,
  field: string,
): Record<string, string> =>
  omitEmpty(
    Object.fromEntries(
      Object.entries(names).map(([apiName, yamlName]) => [apiName, textOf(data[yamlName], `${field}.${yamlName}`)]),
    ),
  );
