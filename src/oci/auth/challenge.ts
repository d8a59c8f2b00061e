import type { IncomingMessage } from 'node:http';
import { isRepoName } from '../../domains/registry/repos/name-rules.ts';
import { OciError } from '../errors.ts';
import type { Route } from '../http/routes.ts';
import { type Action, formatScope, type Scope } from './scope.ts';

/** Tells clients where to get a token and for which scopes, as in Docker's token authentication specification. */
export interface Challenges {
  /** The `WWW-Authenticate` header for a request without a valid token. */
  at(req: IncomingMessage, route: Route, verb: string, query: URLSearchParams): string;
  /** The error for a registry token that lacks a scope. Clients then get another token and repeat the request. */
  insufficient(req: IncomingMessage, ...scopes: readonly Scope[]): OciError;
}

/** `urlOf` returns the URL of this server as a client knows it, and `publicUrl` is the name of the service. */
export function createChallenges(publicUrl: string, urlOf: (req: IncomingMessage) => string): Challenges {
  const bearer = (req: IncomingMessage, scopes: readonly Scope[], error?: string): string => {
    const scope = scopes.map(formatScope).join(' ');
    const parts = [`realm="${urlOf(req)}/v2/token"`, `service="${serviceOf(publicUrl)}"`];
    if (scope !== '') parts.push(`scope="${scope}"`);
    if (error !== undefined) parts.push(`error="${error}"`);
    return `Bearer ${parts.join(',')}`;
  };
  return {
    // The token endpoint takes a password. A bearer challenge would send clients back to the token endpoint.
    at: (req, route, verb, query) =>
      route.kind === 'token' ? `Basic realm="${publicUrl}"` : bearer(req, scopesOf(route, verb, query)),
    insufficient: (req, ...scopes) =>
      new OciError('UNAUTHORIZED', 'the token does not include this action on this repository; request another token', {
        headers: { 'www-authenticate': bearer(req, scopes, 'insufficient_scope') },
      }),
  };
}

/** The name of this server in the `service` parameter: its host and port. */
export const serviceOf = (publicUrl: string): string => new URL(publicUrl).host;

/** The actions of a token that is requested for one action. A push also pulls, so that one token serves all of it. */
const requestedWith: Readonly<Record<Action, readonly Action[]>> = {
  pull: ['pull'],
  push: ['pull', 'push'],
  delete: ['pull', 'delete'],
};

export const scopeFor = (name: string, action: Action): Scope => ({ name, actions: requestedWith[action] });

function scopesOf(route: Route, verb: string, query: URLSearchParams): readonly Scope[] {
  if (!('name' in route)) return [];
  const target = scopeFor(route.name, actionOf(route, verb));
  const from = route.kind === 'uploads' ? query.get('from') : null;
  // Only a valid name, so that a client cannot inject anything into the header.
  return from?.split('/').every(isRepoName) ? [target, scopeFor(from, 'pull')] : [target];
}

function actionOf({ kind }: Route, verb: string): Action {
  if (kind === 'uploads' || kind === 'upload' || verb === 'PUT') return 'push';
  return verb === 'DELETE' ? 'delete' : 'pull';
}
