import type { JsonObject } from '../../lenient-json.ts';
import { versionSchemeOf } from '../../packages/ecosystems.ts';
import { listOf, malformed, requireObject, requireText } from '../../strict-json.ts';
import { compareVersions } from '../../versions/compare.ts';

/** An entry of the `affected` list of a record. */
export interface AffectedEntry {
  /** The path of the entry, such as `affected[2]`. */
  readonly field: string;
  readonly fields: JsonObject;
}

/** The fixed versions of an affected package. */
export interface Fixes {
  /** Versions without the vulnerability, oldest first. */
  readonly fixed: readonly string[];
  /** Whether a range of affected versions has no fix. */
  readonly hasUnfixedVersions: boolean;
}

const RANGE_EVENTS = ['introduced', 'fixed', 'last_affected', 'limit'] as const;

export function readFixes(entries: readonly AffectedEntry[], ecosystem: string): Fixes {
  const scheme = versionSchemeOf(ecosystem);
  const compare = (a: string, b: string): number => compareVersions(scheme, a, b);
  const ranges = entries.flatMap(({ field, fields }) =>
    listOf(fields.ranges, `${field}.ranges`)
      .map((range, index) => readRange(range, `${field}.ranges[${index}]`))
      .filter((range) => range !== undefined),
  );
  const fixed = new Set(
    ranges.flatMap((events) => events.filter(([name]) => name === 'fixed').map(([, version]) => version)),
  );
  const hasUnfixedVersions = ranges.length === 0 || ranges.some((events) => !endsWithFix(events, compare));
  return { fixed: [...fixed].sort(compare), hasUnfixedVersions };
}

type RangeEvent = readonly [name: (typeof RANGE_EVENTS)[number], version: string];

/** Returns undefined for a range of commits: they are not versions of a package. */
function readRange(value: unknown, field: string): RangeEvent[] | undefined {
  const range = requireObject(value, field);
  const type = requireText(range.type, `${field}.type`);
  if (!['SEMVER', 'ECOSYSTEM', 'GIT'].includes(type))
    throw malformed(`${field}.type`, 'must be SEMVER, ECOSYSTEM or GIT');
  const events = listOf(range.events, `${field}.events`).map((event, index) =>
    readRangeEvent(event, `${field}.events[${index}]`),
  );
  if (!events.some(([name]) => name === 'introduced'))
    throw malformed(`${field}.events`, 'must have an introduced event');
  return type === 'GIT' ? undefined : events;
}

function readRangeEvent(value: unknown, field: string): RangeEvent {
  const event = requireObject(value, field);
  const name = RANGE_EVENTS.find((key) => event[key] !== undefined);
  if (name === undefined) throw malformed(field, `must have one of ${RANGE_EVENTS.join(', ')}`);
  return [name, requireText(event[name], `${field}.${name}`)];
}

/** Whether the event with the newest version is a fix. "0" means before all versions, in every scheme. */
function endsWithFix(events: readonly RangeEvent[], compare: (a: string, b: string) => number): boolean {
  const [last] = events
    .filter(([name, version]) => name !== 'introduced' || version !== '0')
    .toSorted(([, a], [, b]) => compare(b, a));
  return last?.[0] === 'fixed';
}
