import { invalid, notFound } from '../../../base/errors.ts';
import type { Reader } from '../../../store/store.ts';
import { type PlatformSize, parsePlatforms } from '../manifests/content-size.ts';
import { digestRule } from '../tags/tags.ts';

export const DEFAULT_ARCHITECTURE = 'amd64';
const FIND = 'SELECT platforms FROM manifest WHERE repo = $1 AND digest = $2';

/** The platforms of an image. They are determined when the image is pushed, so that this is one lookup. */
export async function requirePlatforms(db: Reader, repo: string, digest: string): Promise<readonly PlatformSize[]> {
  const problem = digestRule(digest);
  if (problem) throw invalid('digest', problem);
  const row = await db.get<{ platforms: string }>(FIND, repo, digest);
  if (!row) throw notFound('image', digest);
  return parsePlatforms(row.platforms);
}
