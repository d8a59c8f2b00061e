import { type AdvisoryJson, checkAdvisory, type EventJson, PUBLISHED } from '../advisory.ts';
import { advisoryIdFrom, isAdvisoryId } from '../advisory-id.ts';
import { typeOfEcosystem } from '../ecosystems.ts';
import { damaged, type Fields, fieldsOf, filled, givenText, isFields, listOf, timeOf } from '../reading.ts';
import { REST_KEY, withRest } from '../rest.ts';
import { type Entry, readFixes } from './ranges.ts';
import { type OsvRecord, readRecord, readSeverities } from './record.ts';

/** A package that a record says is affected; it may say so several times. */
interface Affected {
  readonly ecosystem: string;
  readonly name: string;
  readonly entries: Entry[];
}

/** Reads an OSV record: an advisory for each package that it affects. */
export function decodeOsv(value: unknown): AdvisoryJson[] {
  const record = readRecord(value);
  const packages = affectedIn(record.fields);
  // A record with our kind of id is about one package; the others share one among all of theirs.
  const isOurs = isAdvisoryId(record.id) && packages.length === 1;
  const advisories = packages.map((affected) => readAdvisory(record, affected, isOurs));
  return isOurs ? advisories.map((advisory) => completed(advisory, record.fields)) : advisories;
}

function affectedIn({ affected }: Fields): Affected[] {
  const found = new Map<string, Affected>();
  for (const [at, value] of listOf(affected, 'affected').entries()) {
    const field = `affected[${at}]`;
    const { package: named, ...fields } = fieldsOf(value, field);
    const { ecosystem, name } = readPackage(named, `${field}.package`);
    const key = JSON.stringify([ecosystem, name]);
    const known = found.get(key) ?? { ecosystem, name, entries: [] };
    known.entries.push({ field, fields });
    found.set(key, known);
  }
  if (found.size === 0) throw damaged('affected', 'must name at least one package');
  return [...found.values()];
}

function readPackage(value: unknown, field: string): { ecosystem: string; name: string } {
  const { ecosystem, name } = fieldsOf(value, field);
  return { ecosystem: givenText(ecosystem, `${field}.ecosystem`), name: givenText(name, `${field}.name`) };
}

function readAdvisory(record: OsvRecord, { ecosystem, name, entries }: Affected, isOurs: boolean): AdvisoryJson {
  const { id, aliases, severities, fields } = record;
  const own = entries.flatMap((entry) => readSeverities(entry.fields.severity, `${entry.field}.severity`));
  return filled({
    advisoryId: isOurs ? id : advisoryIdFrom(id, ecosystem, name),
    deleteTime: fields.withdrawn === undefined ? '' : timeOf(fields.withdrawn, 'withdrawn'),
    artifactName: name,
    artifactType: typeOfEcosystem(ecosystem),
    componentName: name,
    componentType: ecosystem,
    aliases: isOurs || aliases.includes(id) ? [...aliases] : [id, ...aliases],
    events: eventsOf(fields, ecosystem, entries),
    severities: own.length > 0 ? own : [...severities],
  });
}

/** The day it was published is the only one that stays the same from edition to edition. */
function eventsOf({ published }: Fields, ecosystem: string, entries: readonly Entry[]): EventJson[] {
  const head = {
    ...(published !== undefined && { createTime: timeOf(published, 'published') }),
    reviewState: PUBLISHED,
  };
  const { fixed, isOpen } = readFixes(entries, ecosystem);
  return [
    { ...head, findings: findingsOf(entries), detection: { manual: {} } },
    ...fixed.map((fixedVersion) => ({ ...head, fixed: { fixedVersion } })),
    ...(isOpen ? [{ ...head, truePositiveDetermination: {} }] : []),
  ];
}

/** What the record says of the package, kept as it is. */
const findingsOf = (entries: readonly Entry[]): string =>
  Buffer.from(JSON.stringify(entries.map(({ fields }) => fields))).toString('base64');

/** Adds what an export of ours had to say beyond the format. */
function completed(advisory: AdvisoryJson, { database_specific: own }: Fields): AdvisoryJson {
  const field = `database_specific.${REST_KEY}`;
  const rest = isFields(own) ? own[REST_KEY] : undefined;
  return rest === undefined ? advisory : checkAdvisory(withRest(advisory, fieldsOf(rest, field)), field);
}
