import { find } from '../../../resource/read.ts';
import { batchPlaceholders, parameterBatches } from '../../../store/parameter-batches.ts';
import type { Reader, Row } from '../../../store/store.ts';
import { tags } from './tags.ts';

const LAST_BEFORE = `SELECT name, digest, changed FROM tag_history WHERE id IN (
  SELECT max(id) FROM tag_history WHERE repo = $1 AND changed <= $2 AND name IN (${batchPlaceholders(3)}) GROUP BY name)`;
const DURING = `SELECT name, digest, changed FROM tag_history
  WHERE repo = $1 AND changed > $2 AND changed <= $3 AND name IN (${batchPlaceholders(4)}) ORDER BY id`;

/** A change of the image that a tag points to. */
export interface TagMove {
  /** Undefined when the tag was deleted. */
  readonly digest: string | undefined;
  readonly changed: number;
}

interface MoveRow extends Row {
  readonly name: string;
  readonly digest: string | null;
  readonly changed: number;
}

/** The moves of tags between two times, by tag name, oldest first. The first is the last move before `from`. */
export async function findTagMoves(
  db: Reader,
  repo: string,
  names: readonly string[],
  from: number,
  to: number,
): Promise<ReadonlyMap<string, readonly TagMove[]>> {
  const moves = new Map<string, TagMove[]>(names.map((name) => [name, []]));
  for (const some of parameterBatches(names)) {
    const rows = [
      ...(await db.all<MoveRow>(LAST_BEFORE, repo, from, ...some)),
      ...(await db.all<MoveRow>(DURING, repo, from, to, ...some)),
    ];
    for (const { name, digest, changed } of rows) moves.get(name)?.push({ digest: digest ?? undefined, changed });
  }
  return moves;
}

const IMAGES_OF_TAG = `SELECT digest, changed FROM tag_history
  WHERE repo = $1 AND name = $2 AND digest IS NOT NULL AND changed >= $3 AND changed <= $4 ORDER BY id DESC`;
const HAS_HISTORY = 'SELECT 1 AS found FROM tag_history WHERE repo = $1 AND name = $2 LIMIT 1';

/** The time to which a tag history is restricted, with its ends. */
export interface HistoryPeriod {
  readonly from?: number;
  readonly to?: number;
}

/** An image that a tag pointed to, and since when. */
export interface TaggedImage extends Row {
  readonly digest: string;
  readonly changed: number;
}

/** The last images that a tag name of a repo pointed to, newest first. Undefined for a name that was never used. */
export async function findLastImages(
  db: Reader,
  repo: string,
  name: string,
  { from = 0, to = Number.MAX_SAFE_INTEGER }: HistoryPeriod,
  limit: number,
): Promise<TaggedImage[] | undefined> {
  const found = await db.all<TaggedImage>(`${IMAGES_OF_TAG} LIMIT $5`, repo, name, from, to, limit);
  return found.length > 0 || (await db.get(HAS_HISTORY, repo, name)) ? found : undefined;
}

/** The images that a tag pointed to, newest first. */
export async function findTagHistory(
  db: Reader,
  uid: string,
  { from = 0, to = Number.MAX_SAFE_INTEGER }: HistoryPeriod,
): Promise<TaggedImage[]> {
  const tag = await find(db, tags, uid);
  if (!tag) return [];
  return db.all<TaggedImage>(IMAGES_OF_TAG, tag.parent, tag.message.name, from, to);
}
