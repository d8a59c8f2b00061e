import { stringify } from 'yaml';
import { type AdvisoryJson, type DetectionJson, type EventJson, essenceOf } from '../advisory.ts';
import type { Fields } from '../reading.ts';
import { REST_KEY, restOf } from '../rest.ts';
import { fileName, noteTypes, nvdFields, scanFields } from './event-names.ts';
import { readAdvisory, readableEvent } from './read-advisory.ts';

/** The file of a package with its advisories. */
export function encodeAdvisoryYaml(packageName: string, advisories: readonly AdvisoryJson[]): string {
  const file = {
    'schema-version': '2.0.2',
    package: { name: packageName },
    advisories: advisories.map((advisory) => encodeAdvisory(packageName, essenceOf(advisory))),
  };
  // Long notes stay in one line: folding would be undone, but not by every reader.
  return stringify(file, { lineWidth: 0, aliasDuplicateObjects: false });
}

function encodeAdvisory(packageName: string, advisory: AdvisoryJson): Fields {
  const { advisoryId: id, aliases = [], events = [] } = advisory;
  const core = {
    id,
    ...(aliases.length > 0 && { aliases }),
    ...(events.length > 0 && { events: events.map(encodeEvent) }),
  };
  return completed(core, restOf(advisory, readAdvisory(packageName, core, '')));
}

function encodeEvent(event: EventJson): Fields {
  const { createTime = '' } = event;
  const core = { timestamp: createTime.replace('.000Z', 'Z'), ...typeOf(event) };
  return completed(core, restOf(event, readableEvent(core)));
}

const completed = (core: Fields, rest: Fields | undefined): Fields =>
  rest === undefined ? core : { ...core, [REST_KEY]: JSON.stringify(rest) };

/** The type of an event and its data. */
function typeOf(event: EventJson): Fields {
  const { detection, fixed, falsePositiveDetermination: falsePositive, patched } = event;
  if (detection) return { type: 'detection', data: detectionData(detection) };
  if (fixed) return { type: 'fixed', data: { 'fixed-version': fixed.fixedVersion ?? '' } };
  if (falsePositive) {
    const { type = '', note } = falsePositive;
    return { type: 'false-positive-determination', data: { type: fileName(type), ...noteData(note) } };
  }
  if (patched) {
    return { type: 'patched', data: { 'patched-versions': patched.patchedVersions ?? [], ...noteData(patched.note) } };
  }
  for (const [type, name] of Object.entries(noteTypes)) {
    const said = event[name];
    if (said) return { type, ...(said.note && { data: { note: said.note } }) };
  }
  return {};
}

const noteData = (note: string | undefined): Fields => (note ? { note } : {});

function detectionData({ scanv1, nvdapi }: DetectionJson): Fields {
  if (scanv1) return { type: 'scan/v1', data: renamed(scanv1, scanFields) };
  return nvdapi ? { type: 'nvdapi', data: renamed(nvdapi, nvdFields) } : { type: 'manual' };
}

const renamed = (data: Readonly<Record<string, string>>, names: Readonly<Record<string, string>>): Fields =>
  Object.fromEntries(Object.entries(names).flatMap(([ours, theirs]) => (data[ours] ? [[theirs, data[ours]]] : [])));
