import type { Reader } from '../../../store/store.ts';
import { listTagNames } from './tag-targets.ts';

const AT_ONCE = 1000;
/** `1`, `v1.2`, `3.11.4`: names that are a version and nothing else. */
const VERSION = /^v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?$/;

/** The tag of a repo that names the highest version; undefined when none names one. */
export async function latestVersion(db: Reader, repo: string): Promise<string | undefined> {
  let latest: { name: string; version: readonly number[] } | undefined;
  for (let after = '', isMore = true; isMore; ) {
    const names = await listTagNames(db, repo, { after, limit: AT_ONCE });
    for (const name of names) {
      const version = versionIn(name);
      if (version && (!latest || isHigher(version, latest.version))) latest = { name, version };
    }
    after = names.at(-1) ?? '';
    isMore = names.length === AT_ONCE;
  }
  return latest?.name;
}

function versionIn(name: string): readonly number[] | undefined {
  const [, ...parts] = VERSION.exec(name) ?? [];
  return parts.length === 0 ? undefined : parts.map((part) => Number(part ?? -1));
}

/** Of two that begin alike, the one that says more is the higher: `1.2` may move on, `1.2.0` is what it means. */
function isHigher(a: readonly number[], b: readonly number[]): boolean {
  const at = a.findIndex((part, i) => part !== b[i]);
  return at >= 0 && (a[at] ?? 0) > (b[at] ?? 0);
}
