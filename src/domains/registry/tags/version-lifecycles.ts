import type { FieldViolation } from '../../../base/errors.ts';
import {
  type VersionLifecycle,
  VersionLifecycleSchema,
} from '../../../contract/gen/wharfinger/registry/v1/version_lifecycles_pb.js';
import { defineResource, type Rule } from '../../../resource/definition.ts';
import { findByKeys, findMessagesByUid } from '../../../resource/read.ts';
import * as rules from '../../../resource/rules.ts';
import type { Reader } from '../../../store/store.ts';
import { isTagName } from '../repos/name-rules.ts';

const MAX_VERSION = 64;

const versionRule: Rule<string> = (value) =>
  value.length <= MAX_VERSION && isTagName(value)
    ? undefined
    : `must have 1 to ${MAX_VERSION} letters, digits, ., _ and -, and must not begin with . or -`;

const dateRule: Rule<string> = (value) =>
  value === '' || isDate(value) ? undefined : 'must be a date, such as 2026-01-31';

/** Whether a text is a date of the calendar. Date.parse alone accepts 30 February. */
const isDate = (text: string): boolean =>
  /^\d{4}-\d\d-\d\d$/.test(text) &&
  !Number.isNaN(Date.parse(text)) &&
  new Date(Date.parse(text)).toISOString().startsWith(text);

/** The life cycle of a version of the package in a repo, as the owners of the repo declare it. */
export const versionLifecycles = defineResource({
  kind: 'version lifecycle',
  plural: 'version lifecycles',
  schema: VersionLifecycleSchema,
  parents: ['repo'],
  rules: {
    version: versionRule,
    main_package_name: rules.line(255),
    release_date: dateRule,
    eol_date: dateRule,
    lts_date: dateRule,
    grace_period_expiry_date: dateRule,
  },
  check: periodProblems,
  orders: { version: ({ version }) => version },
  unique: ({ version }, repo) => [
    { key: versionKey(repo, version), taken: `the version ${version} is declared in ${repo} already; update it` },
  ],
});

function periodProblems({ eolDate, gracePeriodExpiryDate: expiry, releaseDate }: VersionLifecycle): FieldViolation[] {
  const problems: FieldViolation[] = [];
  if (expiry !== '' && (eolDate === '' || expiry <= eolDate)) {
    problems.push({ field: 'grace_period_expiry_date', description: 'must be after eol_date, which must be set' });
  }
  if (releaseDate !== '' && eolDate !== '' && eolDate < releaseDate) {
    problems.push({ field: 'eol_date', description: 'must not be before release_date' });
  }
  return problems;
}

/** `v1.2` and `1.2` are the same version. */
const versionKey = (repo: string, version: string): string => `${repo} ${version.replace(/^v(?=\d)/, '')}`;

/** The versions that a tag can belong to, the longest first: `1.2-dev`, `1.2` and `1` for `v1.2-dev`. */
export function versionsOfTag(name: string): string[] {
  const plain = name.replace(/^v(?=\d)/, '');
  const cuts = [...plain.matchAll(/[._-]/g)].map(({ index }) => index);
  return [plain.length, ...cuts.reverse()]
    .filter((cut) => cut > 0 && cut <= MAX_VERSION)
    .map((cut) => plain.slice(0, cut));
}

/** A tag, and the repo that it is in. */
export interface TagName {
  readonly repo: string;
  readonly name: string;
}

/** Finds the declared life cycle of each tag. Tags of versions that are not declared are left out. */
export async function findLifecycles<T extends TagName>(
  db: Reader,
  tags: readonly T[],
): Promise<ReadonlyMap<T, VersionLifecycle>> {
  const keysOf = new Map(
    tags.map((tag) => [tag, versionsOfTag(tag.name).map((version) => versionKey(tag.repo, version))]),
  );
  const uids = await findByKeys(db, versionLifecycles, [...new Set([...keysOf.values()].flat())]);
  const lifecycles = await findMessagesByUid(db, versionLifecycles, [...new Set(uids.values())]);
  const found = new Map<T, VersionLifecycle>();
  for (const [tag, keys] of keysOf) {
    const key = keys.find((candidate) => uids.has(candidate));
    const lifecycle = key === undefined ? undefined : lifecycles.get(uids.get(key) ?? '');
    if (lifecycle) found.set(tag, lifecycle);
  }
  return found;
}
