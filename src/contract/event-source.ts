import type { Method } from './method.ts';

/** The source of the events of the registry, which receivers see as its host name. */
export const REGISTRY_SOURCE = 'registry';

/**
 * What emits the events of a method: the path of the collection that is called, such as `/iam/v2/groups`. It depends on
 * the version of the API and not on the wire.
 */
export function eventSource({ domain, routes }: Pick<Method, 'domain' | 'routes'>): string {
  if (domain === 'oci') return REGISTRY_SOURCE;
  const template = routes[0]?.template ?? '';
  const end = template.indexOf('/{');
  return end < 0 ? template : template.slice(0, end);
}
