import type { Tag } from '../../../contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import { find } from '../../../resource/read.ts';
import { batchPlaceholders, parameterBatches } from '../../../store/parameter-batches.ts';
import type { Reader, Row } from '../../../store/store.ts';
import { tags } from './tags.ts';

const BEFORE = `SELECT name, digest, changed FROM tag_history WHERE id IN (
  SELECT max(id) FROM tag_history WHERE repo = $1 AND changed <= $2 AND name IN (${batchPlaceholders(3)}) GROUP BY name)`;
const DURING = `SELECT name, digest, changed FROM tag_history
  WHERE repo = $1 AND changed > $2 AND changed <= $3 AND name IN (${batchPlaceholders(4)}) ORDER BY id`;

/** From when on a tag pointed somewhere; nowhere once it was deleted. */
export interface TagMove {
  readonly digest: string | undefined;
  readonly changed: number;
}

interface MoveRow extends Row {
  readonly name: string;
  readonly digest: string | null;
  readonly changed: number;
}

/** Where tags of a repo pointed from one time to another, oldest first, beginning with where they pointed at first. */
export async function tagMoves(
  db: Reader,
  repo: string,
  names: readonly string[],
  from: number,
  to: number,
): Promise<ReadonlyMap<string, readonly TagMove[]>> {
  const moves = new Map<string, TagMove[]>(names.map((name) => [name, []]));
  for (const some of parameterBatches(names)) {
    const rows = [
      ...(await db.all<MoveRow>(BEFORE, repo, from, ...some)),
      ...(await db.all<MoveRow>(DURING, repo, from, to, ...some)),
    ];
    for (const { name, digest, changed } of rows) moves.get(name)?.push({ digest: digest ?? undefined, changed });
  }
  return moves;
}

const OF_TAG = `SELECT digest, changed FROM tag_history
  WHERE repo = $1 AND name = $2 AND digest IS NOT NULL AND changed >= $3 AND changed <= $4 ORDER BY id DESC`;

/** The images that a tag pointed to, the newest first. */
export async function historyOf(
  db: Reader,
  uid: string,
  { from = 0, to = Number.MAX_SAFE_INTEGER }: { readonly from?: number; readonly to?: number },
): Promise<{ digest: string; changed: number }[]> {
  const tag = await find(db, tags, uid);
  if (!tag) return [];
  return db.all<{ digest: string; changed: number }>(OF_TAG, tag.parent, (tag.message as Tag).name, from, to);
}
