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
  const essence = essenceOf(advisory);
  const head = headOf(advisory, essence);
  const recorded = recordedIn(essence.events ?? []);
  // What was recorded may be anything that somebody sent; only what can be read again is written again.
  const [record, core] = (recorded && readable({ ...head, affected: named(essence, recorded) })) ??
    readable({ ...head, affected: named(essence, [{ ranges: [rangeOf(essence)] }]) }) ?? [head, {}];
  const rest = restOf(essence, core);
  return rest === undefined ? record : { ...record, database_specific: { [REST_KEY]: rest } };
}

function headOf({ createTime, updateTime }: AdvisoryJson, essence: AdvisoryJson): Fields {
  const { advisoryId: id, deleteTime, aliases = [], severities = [], events = [] } = essence;
  const published = events[0]?.createTime ?? createTime;
  const vectors = severities.filter(isVector).map(({ type, score }) => ({ type: type.replace(/^TYPE_/, ''), score }));
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

/** A record and what a reader makes of it; nothing when it would be refused. */
function readable(record: Fields): [record: Fields, core: Fields] | undefined {
  try {
    return [record, decodeOsv(record)[0] ?? {}];
  } catch {
    return undefined;
  }
}

function named(advisory: AdvisoryJson, entries: readonly Fields[]): Fields[] {
  const { artifactName: name, artifactType: type = '' } = advisory;
  const purl = purlOf({ type, name });
  const names = { ecosystem: ecosystemOf(advisory), name, ...(purl !== undefined && { purl }) };
  return entries.map((entry) => ({ package: names, ...entry }));
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
function rangeOf({ events = [] }: AdvisoryJson): Fields {
  const last = events.findLast((event) => !event.detection);
  const fixed = last?.falsePositiveDetermination ? '0' : last?.fixed?.fixedVersion;
  return { type: 'ECOSYSTEM', events: [{ introduced: '0' }, ...(fixed ? [{ fixed }] : [])] };
}
