import { isObject, type JsonObject } from '../../lenient-json.ts';
import { ecosystemOf, purlTypeOf } from '../../packages/ecosystems.ts';
import { formatPurl } from '../../packages/purl.ts';
import { type AdvisoryJson, type EventJson, stripServerFields } from '../advisory-json.ts';
import { EXTENSION_KEY, extensionOf } from '../extension-fields.ts';
import { decodeOsv } from './decode.ts';
import { isCvssVector } from './record.ts';

const SCHEMA_VERSION = '1.7.0';

/** Encodes an advisory as an OSV record about one package. The id of the record is the id of the advisory. */
export function encodeOsv(advisory: AdvisoryJson): JsonObject {
  const content = stripServerFields(advisory);
  const header = recordHeader(advisory, content);
  const recorded = recordedEntriesIn(content.events ?? []);
  // The recorded entries came from a client, so they may be invalid. Only entries that can be decoded are written.
  const [record, core] = (recorded && tryDecode({ ...header, affected: withPackage(content, recorded) })) ??
    tryDecode({ ...header, affected: withPackage(content, [{ ranges: [rangeOf(content)] }]) }) ?? [header, {}];
  const extension = extensionOf(content, core);
  return extension === undefined ? record : { ...record, database_specific: { [EXTENSION_KEY]: extension } };
}

function recordHeader({ createTime, updateTime }: AdvisoryJson, content: AdvisoryJson): JsonObject {
  const { advisoryId: id, deleteTime, aliases = [], severities = [], events = [] } = content;
  const published = events[0]?.createTime ?? createTime;
  const vectors = severities
    .filter(isCvssVector)
    .map(({ type, score }) => ({ type: type.replace(/^TYPE_/, ''), score }));
  return {
    schema_version: SCHEMA_VERSION,
    id,
    modified: updateTime ?? events.at(-1)?.createTime ?? new Date(0).toISOString(),
    ...(published !== undefined && { published }),
    ...(deleteTime !== undefined && { withdrawn: deleteTime }),
    ...(aliases.length > 0 && { aliases }),
    ...(vectors.length > 0 && { severity: vectors }),
  };
}

/** Returns the record and the advisory that it decodes to. Returns undefined when the record would be refused. */
function tryDecode(record: JsonObject): [record: JsonObject, core: JsonObject] | undefined {
  try {
    return [record, decodeOsv(record)[0] ?? {}];
  } catch {
    return undefined;
  }
}

function withPackage(advisory: AdvisoryJson, entries: readonly JsonObject[]): JsonObject[] {
  const { artifactName: name, artifactType: type = '' } = advisory;
  const purl = formatPurl({ type, name });
  const pkg = { ecosystem: osvEcosystemOf(advisory), name, ...(purl !== undefined && { purl }) };
  return entries.map((entry) => ({ package: pkg, ...entry }));
}

/** An import from OSV stores the ecosystem as the component type. Otherwise it follows from the artifact type. */
function osvEcosystemOf({ artifactType = '', componentType = '' }: AdvisoryJson): string {
  if (componentType !== '' && purlTypeOf(componentType) === artifactType) return componentType;
  return ecosystemOf(artifactType) ?? (artifactType || 'unknown');
}

/** The `affected` entries of the OSV record that the advisory was imported from. */
function recordedEntriesIn(events: readonly EventJson[]): JsonObject[] | undefined {
  const findings = events.find(({ detection }) => detection?.manual)?.findings;
  if (findings === undefined) return undefined;
  try {
    const entries: unknown = JSON.parse(Buffer.from(findings, 'base64').toString());
    return Array.isArray(entries) && entries.length > 0 && entries.every(isOsvEntry) ? entries : undefined;
  } catch {
    return undefined;
  }
}

const isOsvEntry = (value: unknown): boolean => isObject(value) && ('ranges' in value || 'versions' in value);

/** The affected versions by the newest event. A false positive has an empty range: introduced and fixed in 0. */
function rangeOf({ events = [] }: AdvisoryJson): JsonObject {
  const last = events.findLast((event) => !event.detection);
  const fixed = last?.falsePositiveDetermination ? '0' : last?.fixed?.fixedVersion;
  return { type: 'ECOSYSTEM', events: [{ introduced: '0' }, ...(fixed ? [{ fixed }] : [])] };
}
