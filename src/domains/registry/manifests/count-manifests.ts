import { descendantRange } from '../../../base/uid.ts';
import type { Reader } from '../../../store/store.ts';

const COUNT = 'SELECT count(*) AS n FROM manifest WHERE repo = $1 OR (repo > $2 AND repo < $3)';

/** The number of manifests in a repo, or in all repos below a group. */
export async function countManifests(db: Reader, uid: string): Promise<number> {
  return (await db.get<{ n: number }>(COUNT, uid, ...descendantRange(uid)))?.n ?? 0;
}
