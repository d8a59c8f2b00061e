import { MAX_DEPTH, ROOT } from '../../../base/uid.ts';
import type { Reader, Row } from '../../../store/store.ts';
import { groups } from '../../iam/groups/groups.ts';
import { repos } from './repos.ts';

/** What the names of a path lead to. */
export interface Resolved {
  /** The deepest group that the leading names lead to. */
  readonly group?: string;
  readonly repo?: string;
  /** `repo`: all of its groups are there, but the repo is not. */
  readonly missing: 'nothing' | 'repo' | 'group';
}

/** Follows `<organization>/<group>/…/<repo>` by names: a key look-up for each, all in one statement. */
export async function resolveRepo(db: Reader, segments: readonly string[]): Promise<Resolved> {
  // No repo has less than an organization above it, nor is nested deeper than anything can be.
  if (segments.length < 2 || segments.length > MAX_DEPTH + 1) return { missing: 'group' };
  const [first, ...rest] = segments as [string, ...string[]];
  const row = await db.get<Row>(statementFor(segments.length), `${ROOT}/${first}`, ...rest);
  const found = segments.flatMap((_, i) => (row?.[`uid${i}`] ?? []) as string | []);
  const group = found.at(Math.min(found.length, segments.length - 1) - 1);
  const repo = found.length === segments.length ? found.at(-1) : undefined;
  if (group === undefined) return { missing: 'group' };
  if (repo !== undefined) return { group, repo, missing: 'nothing' };
  return { group, missing: found.length === segments.length - 1 ? 'repo' : 'group' };
}

const statements: string[] = [];

/** Each name is looked up under the uid that the one before it gave; all but the last are groups. */
function statementFor(length: number): string {
  statements[length] ??= buildStatement(length);
  return statements[length];
}

function buildStatement(length: number): string {
  const deeper = Array.from({ length: length - 1 }, (_, i) => i + 1);
  const columns = [0, ...deeper].map((i) => `k${i}.uid AS uid${i}`).join(', ');
  const joins = deeper.map((i) => {
    const kind = i === length - 1 ? repos.kind : groups.kind;
    return `LEFT JOIN natural_key k${i} ON k${i}.kind = '${kind}' AND k${i}.key = k${i - 1}.uid || '/' || $${i + 1}`;
  });
  return `SELECT ${columns} FROM natural_key k0 ${joins.join(' ')} WHERE k0.kind = '${groups.kind}' AND k0.key = $1`;
}
