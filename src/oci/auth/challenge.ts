import { isRepoName } from '../../domains/registry/repos/names.ts';
import { OciError } from '../errors.ts';
import type { Route } from '../http/routes.ts';
import { type Action, formatScope, type Scope } from './scope.ts';

/** Says where clients get a token, and for what, as Docker's token specification has it. */
export interface Challenges {
  /** The `WWW-Authenticate` for a request without a good token. */
  at(route: Route, verb: string, query: URLSearchParams): string;
  /** For a registry token that was asked for less than what it is used for: clients come back with a better one. */
  insufficient(...scopes: readonly Scope[]): OciError;
}

export function createChallenges(publicUrl: () => string): Challenges {
  const bearer = (scopes: readonly Scope[], error?: string): string => {
    const url = publicUrl();
    const scope = scopes.map(formatScope).join(' ');
    const parts = [`realm="${url}/v2/token"`, `service="${serviceOf(url)}"`];
    if (scope !== '') parts.push(`scope="${scope}"`);
    if (error !== undefined) parts.push(`error="${error}"`);
    return `Bearer ${parts.join(',')}`;
  };
  return {
    // A token is had for a password; asking for a token to get one would lead nowhere.
    at: (route, verb, query) =>
      route.kind === 'token' ? `Basic realm="${publicUrl()}"` : bearer(scopesOf(route, verb, query)),
    insufficient: (...scopes) =>
      new OciError('UNAUTHORIZED', 'the token was not asked for this; get another', {
        headers: { 'www-authenticate': bearer(scopes, 'insufficient_scope') },
      }),
  };
}

/** How registry clients name this server. */
export const serviceOf = (publicUrl: string): string => new URL(publicUrl).host;

/** What a token is asked for, so that one serves a whole push. */
const together: Readonly<Record<Action, readonly Action[]>> = {
  pull: ['pull'],
  push: ['pull', 'push'],
  delete: ['pull', 'delete'],
};

export const scopeFor = (name: string, action: Action): Scope => ({ name, actions: together[action] });

function scopesOf(route: Route, verb: string, query: URLSearchParams): readonly Scope[] {
  if (!('name' in route)) return [];
  const own = scopeFor(route.name, actionOf(route, verb));
  const from = route.kind === 'uploads' ? query.get('from') : null;
  // Not from any text of the client: the header must stay one header.
  return from?.split('/').every(isRepoName) ? [own, scopeFor(from, 'pull')] : [own];
}

function actionOf({ kind }: Route, verb: string): Action {
  if (kind === 'uploads' || kind === 'upload' || verb === 'PUT') return 'push';
  return verb === 'DELETE' ? 'delete' : 'pull';
}
