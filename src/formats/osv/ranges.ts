import { rulesFor } from '../ecosystems.ts';
import { damaged, type Fields, fieldsOf, givenText, listOf } from '../reading.ts';
import { compareVersions } from '../versions/compare.ts';

/** What a record says about a package, and where. */
export interface Entry {
  /** Such as `affected[2]`. */
  readonly field: string;
  readonly fields: Fields;
}

/** What the ranges of an affected package say of its versions. */
export interface Fixes {
  /** Versions without the vulnerability, oldest first. */
  readonly fixed: readonly string[];
  /** Whether versions remain that nothing fixes. */
  readonly isOpen: boolean;
}

const LIMITS = ['introduced', 'fixed', 'last_affected', 'limit'] as const;

export function readFixes(entries: readonly Entry[], ecosystem: string): Fixes {
  const rules = rulesFor(ecosystem);
  const read = entries.flatMap(({ field, fields }) =>
    listOf(fields.ranges, `${field}.ranges`)
      .map((range, at) => readRange(range, `${field}.ranges[${at}]`))
      .filter((range) => range !== undefined),
  );
  const fixed = new Set(
    read.flatMap((limits) => limits.filter(([name]) => name === 'fixed').map(([, version]) => version)),
  );
  const isOpen = read.length === 0 || read.some((limits) => !isClosed(limits, (a, b) => compareVersions(rules, a, b)));
  return { fixed: [...fixed].sort((a, b) => compareVersions(rules, a, b)), isOpen };
}

type Limit = readonly [name: (typeof LIMITS)[number], version: string];

/** Commits are no versions that anybody installs. */
function readRange(value: unknown, field: string): Limit[] | undefined {
  const range = fieldsOf(value, field);
  const type = givenText(range.type, `${field}.type`);
  if (!['SEMVER', 'ECOSYSTEM', 'GIT'].includes(type))
    throw damaged(`${field}.type`, 'must be SEMVER, ECOSYSTEM or GIT');
  const limits = listOf(range.events, `${field}.events`).map((event, at) => readLimit(event, `${field}.events[${at}]`));
  if (!limits.some(([name]) => name === 'introduced')) throw damaged(`${field}.events`, 'must say what introduced it');
  return type === 'GIT' ? undefined : limits;
}

function readLimit(value: unknown, field: string): Limit {
  const event = fieldsOf(value, field);
  const name = LIMITS.find((known) => event[known] !== undefined);
  if (name === undefined) throw damaged(field, `must have one of ${LIMITS.join(', ')}`);
  return [name, givenText(event[name], `${field}.${name}`)];
}

/** The last thing that happened is a fix. "0" stands for before all versions, whatever the rules make of it. */
function isClosed(limits: readonly Limit[], compare: (a: string, b: string) => number): boolean {
  const [last] = limits
    .filter(([name, version]) => name !== 'introduced' || version !== '0')
    .toSorted(([, a], [, b]) => compare(b, a));
  return last?.[0] === 'fixed';
}
