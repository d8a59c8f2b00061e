import type { Reader } from '../../store/store.ts';
import type { Resource } from '../definition.ts';
import type { Report } from './difference.ts';

const NEXT_KIND = 'SELECT min(kind) AS kind FROM resource WHERE kind > $1';

/** Reports the kinds of resources that are not declared: only a newer version can check them. */
export async function checkKinds(db: Reader, resources: readonly Resource[], report: Report): Promise<void> {
  for (let after = ''; ; ) {
    const kind = (await db.get<{ kind: string | null }>(NEXT_KIND, after))?.kind;
    if (!kind) return;
    if (!resources.some((resource) => resource.kind === kind)) {
      const description = 'this version does not know resources of this kind';
      const advice = 'run the check with the newest version of wharf that has used the database';
      report({ kind, uid: '', problem: 'unknown kind', description, isRepairable: false, isRepaired: false, advice });
    }
    after = kind;
  }
}
