import { invalid, notFound } from '../../../base/errors.ts';
import type { Reader } from '../../../store/store.ts';
import { type PlatformSize, platformsIn } from '../manifests/content.ts';
import { digestRule } from '../tags/tags.ts';

export const DEFAULT_ARCHITECTURE = 'amd64';
const FIND = 'SELECT platforms FROM manifest WHERE repo = $1 AND digest = $2';

/** What an image runs on. Found out when it was pushed, so that asking for it is one look-up. */
export async function platformsOf(db: Reader, repo: string, digest: string): Promise<readonly PlatformSize[]> {
  const problem = digestRule(digest);
  if (problem) throw invalid('digest', problem);
  const row = await db.get<{ platforms: string }>(FIND, repo, digest);
  if (!row) throw notFound('image', digest);
  return platformsIn(row.platforms);
}
