import { invalid } from '../../base/errors.ts';
import { isUid } from '../../base/uid.ts';
import type { Method, Route, Verb } from '../../contract/method.ts';
import type { Capture, Template } from './path-template.ts';
import { capturesOf, compareSpecificity, matchesTemplate, parseTemplate } from './path-template.ts';
import type { SplitPath } from './request-target.ts';
import { splitPath } from './request-target.ts';

/** The value of a path variable: the proto path of its request field, and the decoded text. */
export interface PathValue {
  readonly field: string;
  readonly text: string;
}

export interface MatchedRoute {
  readonly kind: 'match';
  readonly method: Method;
  readonly route: Route;
  readonly variables: readonly PathValue[];
}

export type RouteLookup =
  | MatchedRoute
  | { readonly kind: 'verb not allowed'; readonly allow: readonly Verb[] }
  | { readonly kind: 'no match' };

/** Finds the method for an HTTP verb and a path without its query; throws INVALID_ARGUMENT for a malformed path. */
export type Router = (verb: string, path: string) => RouteLookup;

interface Entry {
  readonly method: Method;
  readonly route: Route;
  readonly template: Template;
  /** Whether the variable must be a uid. */
  readonly isUidOnly?: boolean;
}

/**
 * A node of a tree by the leading literal segments of all templates. The other segments are compared entry by entry.
 */
interface Node {
  readonly children: Map<string, Node>;
  /** The most specific first. */
  readonly entries: Entry[];
}

const newNode = (): Node => ({ children: new Map(), entries: [] });

export function createRouter(methods: readonly Method[]): Router {
  const root = newNode();
  const customVerbs = new Set<string | undefined>();
  for (const method of methods) {
    for (const route of method.routes) {
      const template = parseTemplate(route.template);
      const { entries } = nodeFor(root, template);
      entries.push({ method, route, template });
      const forUid = templateForUid(template);
      if (forUid) entries.push({ method, route, template: forUid, isUidOnly: true });
      entries.sort((a, b) => compareSpecificity(a.template, b.template));
      customVerbs.add(template.customVerb);
    }
  }

  return (verb, path) => {
    const colon = path.lastIndexOf(':');
    const customVerb = colon > path.lastIndexOf('/') ? path.slice(colon + 1) : undefined;
    // Only a custom verb that a route has is split off. Any other colon is part of the last segment.
    if (customVerb !== undefined && customVerbs.has(customVerb)) {
      const match = find(root, splitPath(path.slice(0, colon)), customVerb, verb);
      if (match.kind !== 'no match') return match;
    }
    return find(root, splitPath(path), undefined, verb);
  };
}

function nodeFor(root: Node, template: Template): Node {
  let node = root;
  for (const segment of template.segments) {
    if (segment.kind !== 'literal') break;
    const child = node.children.get(segment.text) ?? newNode();
    node.children.set(segment.text, child);
    node = child;
  }
  return node;
}

function find(root: Node, path: SplitPath, customVerb: string | undefined, verb: string): RouteLookup {
  const trail = [root];
  for (const segment of path.segments) {
    const child = trail.at(-1)?.children.get(segment);
    if (child === undefined) break;
    trail.push(child);
  }
  const allow = new Set<Verb>();
  // A template with more leading literals is more specific.
  for (let depth = trail.length - 1; depth >= 0; depth--) {
    for (const entry of (trail[depth] as Node).entries) {
      if (entry.template.customVerb !== customVerb || !matches(entry, path.segments)) continue;
      if (entry.route.verb === verb) return matchedRoute(entry, path);
      allow.add(entry.route.verb);
    }
  }
  throwPathProblem(path, []);
  return allow.size === 0 ? { kind: 'no match' } : { kind: 'verb not allowed', allow: [...allow] };
}

function matches({ template, isUidOnly }: Entry, path: readonly string[]): boolean {
  if (!matchesTemplate(template, path)) return false;
  return !isUidOnly || capturesOf(template, path).every(({ from, to }) => isUid(path.slice(from, to).join('/')));
}

/** The template that also matches a uid with its slashes, where the only variable of `template` is one segment. */
function templateForUid({ segments, variables, many, customVerb }: Template): Template | undefined {
  const [variable, another] = variables;
  if (!variable || another || many >= 0) return undefined;
  const spread = segments.map((segment) => (segment.kind === 'one' ? { ...segment, kind: 'many' as const } : segment));
  return { segments: spread, variables, many: variable.at, customVerb };
}

function matchedRoute({ method, route, template }: Entry, path: SplitPath): MatchedRoute {
  const captures = capturesOf(template, path.segments);
  throwPathProblem(path, captures);
  const variables = captures.map(({ variable, from, to }) => ({
    field: variable,
    text: path.segments.slice(from, to).join('/'),
  }));
  return { kind: 'match', method, route, variables };
}

function throwPathProblem({ problems }: SplitPath, captures: readonly Capture[]): void {
  for (const [index, description] of problems) {
    throw invalid(captures.find(({ from, to }) => from <= index && index < to)?.variable ?? 'path', description);
  }
}
