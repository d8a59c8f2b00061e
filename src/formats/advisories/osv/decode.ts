import { isObject, type JsonObject } from '../../lenient-json.ts';
import { purlTypeOf } from '../../packages/ecosystems.ts';
import { listOf, malformed, omitEmpty, requireObject, requireText, requireTime } from '../../strict-json.ts';
import { deriveAdvisoryId, isAdvisoryId } from '../advisory-id.ts';
import { type AdvisoryJson, APPROVED, checkAdvisory, type EventJson } from '../advisory-json.ts';
import { EXTENSION_KEY, mergeExtension } from '../extension-fields.ts';
import { type AffectedEntry, readFixes } from './affected-ranges.ts';
import { type OsvRecord, readRecord, readSeverities } from './record.ts';

/** An affected package with all its entries: a record may list a package several times. */
interface AffectedPackage {
  readonly ecosystem: string;
  readonly name: string;
  readonly entries: AffectedEntry[];
}

/** Decodes an OSV record to one advisory for each affected package. */
export function decodeOsv(value: unknown): AdvisoryJson[] {
  const record = readRecord(value);
  const packages = affectedPackagesIn(record.fields);
  // A record with an advisory id is one advisory. The id of any other record is shared by all its packages.
  const isAdvisory = isAdvisoryId(record.id) && packages.length === 1;
  const advisories = packages.map((affected) => readAdvisory(record, affected, isAdvisory));
  return isAdvisory ? advisories.map((advisory) => mergeOwnExtension(advisory, record.fields)) : advisories;
}

function affectedPackagesIn({ affected }: JsonObject): AffectedPackage[] {
  const packages = new Map<string, AffectedPackage>();
  for (const [index, value] of listOf(affected, 'affected').entries()) {
    const field = `affected[${index}]`;
    const { package: pkg, ...fields } = requireObject(value, field);
    const { ecosystem, name } = readPackage(pkg, `${field}.package`);
    const key = JSON.stringify([ecosystem, name]);
    const affectedPackage = packages.get(key) ?? { ecosystem, name, entries: [] };
    affectedPackage.entries.push({ field, fields });
    packages.set(key, affectedPackage);
  }
  if (packages.size === 0) throw malformed('affected', 'must name at least one package');
  return [...packages.values()];
}

function readPackage(value: unknown, field: string): { ecosystem: string; name: string } {
  const { ecosystem, name } = requireObject(value, field);
  return { ecosystem: requireText(ecosystem, `${field}.ecosystem`), name: requireText(name, `${field}.name`) };
}

function readAdvisory(
  record: OsvRecord,
  { ecosystem, name, entries }: AffectedPackage,
  isAdvisory: boolean,
): AdvisoryJson {
  const { id, aliases, severities, fields } = record;
  const own = entries.flatMap((entry) => readSeverities(entry.fields.severity, `${entry.field}.severity`));
  return omitEmpty({
    advisoryId: isAdvisory ? id : deriveAdvisoryId(id, ecosystem, name),
    deleteTime: fields.withdrawn === undefined ? '' : requireTime(fields.withdrawn, 'withdrawn'),
    artifactName: name,
    artifactType: purlTypeOf(ecosystem),
    componentName: name,
    componentType: ecosystem,
    aliases: isAdvisory || aliases.includes(id) ? [...aliases] : [id, ...aliases],
    events: eventsOf(fields, ecosystem, entries),
    severities: own.length > 0 ? own : [...severities],
  });
}

/**
 * All events get the time of publication, because it is the only time that does not change when the record is edited.
 */
function eventsOf({ published }: JsonObject, ecosystem: string, entries: readonly AffectedEntry[]): EventJson[] {
  const common = {
    ...(published !== undefined && { createTime: requireTime(published, 'published') }),
    reviewState: APPROVED,
  };
  const { fixed, hasUnfixedVersions } = readFixes(entries, ecosystem);
  return [
    { ...common, findings: findingsOf(entries), detection: { manual: {} } },
    ...fixed.map((fixedVersion) => ({ ...common, fixed: { fixedVersion } })),
    ...(hasUnfixedVersions ? [{ ...common, truePositiveDetermination: {} }] : []),
  ];
}

/** The entries of the package, unchanged, so that an export can write them again. */
const findingsOf = (entries: readonly AffectedEntry[]): string =>
  Buffer.from(JSON.stringify(entries.map(({ fields }) => fields))).toString('base64');

/** Merges the extension that an export of this server added to the record. */
function mergeOwnExtension(advisory: AdvisoryJson, { database_specific: database }: JsonObject): AdvisoryJson {
  const field = `database_specific.${EXTENSION_KEY}`;
  const extension = isObject(database) ? database[EXTENSION_KEY] : undefined;
  return extension === undefined
    ? advisory
    : checkAdvisory(mergeExtension(advisory, requireObject(extension, field)), field);
}
