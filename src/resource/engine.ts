import { ROOT } from '../base/uid.ts';
import type { Resource } from './definition.ts';
import type { ResourcesByKind } from './delete.ts';
import type { PageTokens } from './list/page-token.ts';

/** What the standard methods of all resources share. */
export interface Engine {
  readonly kinds: ResourcesByKind;
  readonly pageTokens: PageTokens;
}

/** Checks the declarations against each other, so that a misspelt kind stops the start and not the first delete. */
export function createEngine(resources: readonly Resource[], pageTokens: PageTokens): Engine {
  const kinds = new Map(resources.map((resource) => [resource.kind, resource]));
  if (kinds.size < resources.length) throw new Error('two resources are declared with the same kind');
  for (const { kind, parents, cascade = [] } of resources) {
    const unknown = [...parents, ...cascade].find((other) => other !== ROOT && !kinds.has(other));
    if (unknown !== undefined) throw new Error(`resource ${kind} refers to the kind ${unknown}, which is not declared`);
    const unrelated = cascade.find((child) => !kinds.get(child)?.parents.includes(kind));
    if (unrelated !== undefined) throw new Error(`resource ${kind} cascades to ${unrelated}, which is never its child`);
  }
  return { kinds, pageTokens };
}
