import { stringify } from 'yaml';
import type { JsonObject } from '../../lenient-json.ts';
import { type AdvisoryJson, type DetectionJson, type EventJson, stripServerFields } from '../advisory-json.ts';
import { EXTENSION_KEY, extensionOf } from '../extension-fields.ts';
import { noteTypes, nvdFields, scanFields, yamlTypeOf } from './event-names.ts';
import { readAdvisory, tryReadEvent } from './read-advisory.ts';

/** Encodes the advisories of a package as one file. */
export function encodeAdvisoryYaml(packageName: string, advisories: readonly AdvisoryJson[]): string {
  const file = {
    'schema-version': '2.0.2',
    package: { name: packageName },
    advisories: advisories.map((advisory) => encodeAdvisory(packageName, stripServerFields(advisory))),
  };
  // Long notes are not folded, because some parsers do not restore folded lines correctly.
  return stringify(file, { lineWidth: 0, aliasDuplicateObjects: false });
}

function encodeAdvisory(packageName: string, advisory: AdvisoryJson): JsonObject {
  const { advisoryId: id, aliases = [], events = [] } = advisory;
  const core = {
    id,
    ...(aliases.length > 0 && { aliases }),
    ...(events.length > 0 && { events: events.map(encodeEvent) }),
  };
  return withExtension(core, extensionOf(advisory, readAdvisory(packageName, core, '')));
}

function encodeEvent(event: EventJson): JsonObject {
  const { createTime = '' } = event;
  const core = { timestamp: createTime.replace('.000Z', 'Z'), ...encodeEventType(event) };
  return withExtension(core, extensionOf(event, tryReadEvent(core)));
}

/** The extension is one line of JSON, because it would be longer as YAML. */
const withExtension = (core: JsonObject, extension: JsonObject | undefined): JsonObject =>
  extension === undefined ? core : { ...core, [EXTENSION_KEY]: JSON.stringify(extension) };

function encodeEventType(event: EventJson): JsonObject {
  const { detection, fixed, falsePositiveDetermination: falsePositive, patched } = event;
  if (detection) return { type: 'detection', data: detectionData(detection) };
  if (fixed) return { type: 'fixed', data: { 'fixed-version': fixed.fixedVersion ?? '' } };
  if (falsePositive) {
    const { type = '', note } = falsePositive;
    return { type: 'false-positive-determination', data: { type: yamlTypeOf(type), ...noteData(note) } };
  }
  if (patched) {
    return { type: 'patched', data: { 'patched-versions': patched.patchedVersions ?? [], ...noteData(patched.note) } };
  }
  for (const [type, name] of Object.entries(noteTypes)) {
    const content = event[name];
    if (content) return { type, ...(content.note && { data: { note: content.note } }) };
  }
  return {};
}

const noteData = (note: string | undefined): JsonObject => (note ? { note } : {});

function detectionData({ scanv1, nvdapi }: DetectionJson): JsonObject {
  if (scanv1) return { type: 'scan/v1', data: renameFields(scanv1, scanFields) };
  return nvdapi ? { type: 'nvdapi', data: renameFields(nvdapi, nvdFields) } : { type: 'manual' };
}

const renameFields = (data: Readonly<Record<string, string>>, names: Readonly<Record<string, string>>): JsonObject =>
  Object.fromEntries(
    Object.entries(names).flatMap(([apiName, yamlName]) => (data[apiName] ? [[yamlName, data[apiName]]] : [])),
  );
