import type { Reader } from '../../../store/store.ts';
import { listTagNames } from './tag-targets.ts';

const PAGE_SIZE = 1000;
/** `1`, `v1.2`, `3.11.4`: names that consist of a version only. */
const VERSION = /^v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?$/;

/** The tag of a repo with the highest version as its name; undefined when no name is a version. */
export async function findLatestVersionTag(db: Reader, repo: string): Promise<string | undefined> {
  let latest: { name: string; version: readonly number[] } | undefined;
  for (let after = '', isMore = true; isMore; ) {
    const names = await listTagNames(db, repo, { after, limit: PAGE_SIZE });
    for (const name of names) {
      const version = parseVersion(name);
      if (version && (!latest || isHigher(version, latest.version))) latest = { name, version };
    }
    after = names.at(-1) ?? '';
    isMore = names.length === PAGE_SIZE;
  }
  return latest?.name;
}

/** The parts of a version. A missing part is -1, so that `1.2.0`, which is a fixed release, is higher than `1.2`. */
function parseVersion(name: string): readonly number[] | undefined {
  const [, ...parts] = VERSION.exec(name) ?? [];
  return parts.length === 0 ? undefined : parts.map((part) => Number(part ?? -1));
}

function isHigher(a: readonly number[], b: readonly number[]): boolean {
  const at = a.findIndex((part, i) => part !== b[i]);
  return at >= 0 && (a[at] ?? 0) > (b[at] ?? 0);
}
