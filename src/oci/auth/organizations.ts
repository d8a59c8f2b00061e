import { ROOT } from '../../base/uid.ts';
import { groups } from '../../domains/iam/groups/groups.ts';
import { isRepoName } from '../../domains/registry/repos/name-rules.ts';
import { findByKeys } from '../../resource/read.ts';
import type { Reader } from '../../store/store.ts';
import type { Route } from '../http/routes.ts';
import { parseScope } from './scope.ts';

/** The uids of the organizations that a request names: by its repository, or by the scopes of a requested token. */
export async function organizationsOf(db: Reader, route: Route, query: URLSearchParams): Promise<readonly string[]> {
  const repositories = 'name' in route ? [route.name] : route.kind === 'token' ? scopesIn(query) : [];
  const names = new Set(repositories.map((name) => name.split('/', 1)[0] ?? '').filter(isRepoName));
  const uids = await findByKeys(
    db,
    groups,
    [...names].map((name) => `${ROOT}/${name}`),
  );
  return [...uids.values()];
}

/** The names of the repositories that a token is requested for. The token endpoint limits their number. */
const scopesIn = (query: URLSearchParams): string[] =>
  query
    .getAll('scope')
    .flatMap((text) => text.split(' '))
    .slice(0, 20)
    .flatMap((text) => parseScope(text)?.name ?? []);
