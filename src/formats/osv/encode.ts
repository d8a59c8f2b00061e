import { type AdvisoryJson, type EventJson, essenceOf } from '../advisory.ts';
import { ecosystemOfType, typeOfEcosystem } from '../ecosystems.ts';
import { purlOf } from '../purl.ts';
import { type Fields, isFields } from '../reading.ts';
import { REST_KEY, restOf } from '../rest.ts';
import { decodeOsv } from './decode.ts';
import { isVector } from './record.ts';

const SCHEMA_VERSION = '1.7.0';

/** An advisory as an OSV record: about one package, under the advisory's own id. */
export function encodeOsv(advisory: AdvisoryJson): Fields {
  const { createTime, updateTime } = advisory;
  const essence = essenceOf(advisory);
  const { deleteTime, aliases = [], severities = [], events = [] } = essence;
  const published = events[0]?.createTime ?? createTime;
  const vectors = severities.filter(isVector).map(({ type, score }) => ({ type: type.replace(/^TYPE_/, ''), score }));
  const record = {
    schema_version: SCHEMA_VERSION,
    id: advisory.advisoryId,
    modified: updateTime ?? events.at(-1)?.createTime ?? new Date(0).toISOString(),
    ...(published !== undefined && { published }),
    ...(deleteTime !== undefined && { withdrawn: deleteTime }),
    ...(aliases.length > 0 && { aliases }),
    ...(vectors.length > 0 && { severity: vectors }),
    affected: affectedOf(essence),
  };
  const rest = restOf(essence, readable(record));
  return rest === undefined ? record : { ...record, database_specific: { [REST_KEY]: rest } };
}

/** As much of an advisory as the format can say. */
function readable(record: Fields): Fields {
  try {
    return decodeOsv(record)[0] ?? {};
  } catch {
    return {};
  }
}

function affectedOf(advisory: AdvisoryJson): Fields[] {
  const { artifactName: name, artifactType: type = '', events = [] } = advisory;
  const purl = purlOf({ type, name });
  const named = { ecosystem: ecosystemOf(advisory), name, ...(purl !== undefined && { purl }) };
  const recorded = recordedIn(events) ?? [{ ranges: [{ type: 'ECOSYSTEM', events: limitsOf(events) }] }];
  return recorded.map((entry) => ({ package: named, ...entry }));
}

/** Imports from OSV keep the ecosystem as the type of the component; others follow from the type of the artifact. */
function ecosystemOf({ artifactType = '', componentType = '' }: AdvisoryJson): string {
  if (componentType !== '' && typeOfEcosystem(componentType) === artifactType) return componentType;
  return ecosystemOfType(artifactType) ?? (artifactType || 'unknown');
}

/** What an OSV record said, where the advisory comes from one. */
function recordedIn(events: readonly EventJson[]): Fields[] | undefined {
  const findings = events.find(({ detection }) => detection?.manual)?.findings;
  if (findings === undefined) return undefined;
  try {
    const entries: unknown = JSON.parse(Buffer.from(findings, 'base64').toString());
    return Array.isArray(entries) && entries.length > 0 && entries.every(isOsvEntry) ? entries : undefined;
  } catch {
    return undefined;
  }
}

const isOsvEntry = (value: unknown): boolean => isFields(value) && ('ranges' in value || 'versions' in value);

/** Where the vulnerability begins and ends, by the newest event. One that never was ends where it begins. */
function limitsOf(events: readonly EventJson[]): Fields[] {
  const last = events.findLast((event) => !event.detection);
  const fixed = last?.falsePositiveDetermination ? '0' : last?.fixed?.fixedVersion;
  return [{ introduced: '0' }, ...(fixed ? [{ fixed }] : [])];
}
