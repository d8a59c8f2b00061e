import type { Method } from './method.ts';

/** The name that a version of the original API has in packages and paths. */
export type ApiVersion = 'v1' | 'v2beta1' | 'v2';

const PACKAGE = /^chainguard\.platform\.\w+\.(?:(v1|v2beta1|v2)\.)?/;

/** The version that a method belongs to; undefined for the services of Wharfinger. Most packages of v1 name none. */
export function versionOf({ id }: Pick<Method, 'id'>): ApiVersion | undefined {
  const match = PACKAGE.exec(id);
  return match ? ((match[1] ?? 'v1') as ApiVersion) : undefined;
}
