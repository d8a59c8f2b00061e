import type { JsonObject } from '../../lenient-json.ts';
import { listOf, malformed, omitEmpty, requireObject, requireText, textOf, textsOf } from '../../strict-json.ts';
import { deriveAdvisoryId, isAdvisoryId } from '../advisory-id.ts';
import { type AdvisoryJson, checkAdvisory, type EventJson } from '../advisory-json.ts';
import { EXTENSION_KEY, mergeExtension } from '../extension-fields.ts';
import { readEvent } from './read-event.ts';

/** Reads an advisory of a file, with the extensions that an export of this server added. */
export function readAdvisory(artifactName: string, value: unknown, field: string): AdvisoryJson {
  const advisory = requireObject(value, field);
  const events = listOf(advisory.events, `${field}.events`).map((event, index) =>
    readEventParts(event, `${field}.events[${index}]`),
  );
  const core = readCore(
    artifactName,
    advisory,
    events.map(({ core }) => core),
    field,
  );
  const { [EXTENSION_KEY]: extension } = advisory;
  if (extension === undefined && events.every((event) => event.extension === undefined)) return core;
  const whole = {
    ...core,
    ...(events.length > 0 && { events: events.map(({ core, extension = {} }) => mergeExtension(core, extension)) }),
  };
  return checkAdvisory(mergeExtension(whole, extensionIn(extension, field)), field);
}

function readCore(artifactName: string, advisory: JsonObject, events: EventJson[], field: string): AdvisoryJson {
  const id = requireText(advisory.id, `${field}.id`);
  const aliases = textsOf(advisory.aliases, `${field}.aliases`);
  const scan = events.find(({ detection }) => detection?.scanv1)?.detection?.scanv1 ?? {};
  return omitEmpty({
    // In early files the id of an advisory is the id of the vulnerability.
    advisoryId: isAdvisoryId(id) ? id : deriveAdvisoryId(id, 'apk', artifactName),
    artifactName,
    artifactType: 'apk',
    componentName: scan.component ?? '',
    componentType: scan.componentType ?? '',
    componentLocation: scan.componentLocation ?? '',
    aliases: isAdvisoryId(id) || aliases.includes(id) ? aliases : [id, ...aliases],
    events,
  });
}

function readEventParts(value: unknown, field: string): { core: EventJson; extension?: JsonObject } {
  const event = requireObject(value, field);
  const { [EXTENSION_KEY]: extension } = event;
  return extension === undefined
    ? { core: readEvent(event, field) }
    : { core: tryReadEvent(event), extension: extensionIn(extension, field) };
}

/** The part of an event that the format can express. It is empty for a fix without a version, for example. */
export function tryReadEvent(event: JsonObject): EventJson {
  try {
    return readEvent(event, '');
  } catch {
    return {};
  }
}

function extensionIn(value: unknown, field: string): JsonObject {
  if (value === undefined) return {};
  try {
    return requireObject(JSON.parse(textOf(value, field)), field);
  } catch {
    throw malformed(`${field}.${EXTENSION_KEY}`, 'must be JSON that an export of this server wrote');
  }
}
