import { MAX_DEPTH, ROOT, type Uid } from '../../../base/uid.ts';
import type { Reader, Row } from '../../../store/store.ts';
import { groups } from '../../iam/groups/groups.ts';
import { repos } from './repos.ts';

/** What a repo path refers to. */
export interface ResolvedPath {
  /** The last group of the path that exists. */
  readonly group?: Uid;
  readonly repo?: Uid;
  /** `repo`: all groups of the path exist, but the repo does not. */
  readonly missing: 'nothing' | 'repo' | 'group';
}

/** The uids of the names of a path: `uid0`, `uid1`… */
interface UidRow extends Row {
  readonly [column: string]: Uid | null;
}

/** Resolves a path `<organization>/<group>/…/<repo>` with one statement, which does one key lookup for each name. */
export async function resolveRepo(db: Reader, segments: readonly string[]): Promise<ResolvedPath> {
  // A repo is in an organization at least, and nested at most MAX_DEPTH levels deep.
  if (segments.length < 2 || segments.length > MAX_DEPTH + 1) return { missing: 'group' };
  const [first, ...rest] = segments as [string, ...string[]];
  const row = await db.get<UidRow>(statementFor(segments.length), `${ROOT}/${first}`, ...rest);
  const found = segments.flatMap((_, i) => row?.[`uid${i}`] ?? []);
  const group = found.at(Math.min(found.length, segments.length - 1) - 1);
  const repo = found.length === segments.length ? found.at(-1) : undefined;
  if (group === undefined) return { missing: 'group' };
  if (repo !== undefined) return { group, repo, missing: 'nothing' };
  return { group, missing: found.length === segments.length - 1 ? 'repo' : 'group' };
}

const statements: string[] = [];

function statementFor(length: number): string {
  statements[length] ??= buildStatement(length);
  return statements[length];
}

/** Joins each name to the uid of the previous one. All but the last are names of groups. */
function buildStatement(length: number): string {
  const deeper = Array.from({ length: length - 1 }, (_, i) => i + 1);
  const columns = [0, ...deeper].map((i) => `k${i}.uid AS uid${i}`).join(', ');
  const joins = deeper.map((i) => {
    const kind = i === length - 1 ? repos.kind : groups.kind;
    return `LEFT JOIN natural_key k${i} ON k${i}.kind = '${kind}' AND k${i}.key = k${i - 1}.uid || '/' || $${i + 1}`;
  });
  return `SELECT ${columns} FROM natural_key k0 ${joins.join(' ')} WHERE k0.kind = '${groups.kind}' AND k0.key = $1`;
}
