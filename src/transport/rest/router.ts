import { invalid } from '../../base/errors.ts';
import type { Method, Route, Verb } from '../../contract/method.ts';
import type { Capture, Template } from './path-template.ts';
import { capturesOf, compareNarrowness, matchesTemplate, parseTemplate } from './path-template.ts';
import type { SplitPath } from './request-target.ts';
import { splitPath } from './request-target.ts';

/** A path variable: the proto path of the request field it goes to, and its decoded text. */
export interface Variable {
  readonly field: string;
  readonly text: string;
}

export interface Found {
  readonly kind: 'found';
  readonly method: Method;
  readonly route: Route;
  readonly variables: readonly Variable[];
}

export type Match =
  | Found
  | { readonly kind: 'other verbs'; readonly allow: readonly Verb[] }
  | { readonly kind: 'nothing' };

/** Finds the method for an HTTP verb and a path without its query; throws INVALID_ARGUMENT for a malformed path. */
export type Router = (verb: string, path: string) => Match;

interface Entry {
  readonly method: Method;
  readonly route: Route;
  readonly template: Template;
}

/** A tree over the leading literals of all templates; what follows them is compared entry by entry. */
interface Node {
  readonly children: Map<string, Node>;
  /** The narrowest first. */
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
      entries.sort((a, b) => compareNarrowness(a.template, b.template));
      customVerbs.add(template.customVerb);
    }
  }

  return (verb, path) => {
    const colon = path.lastIndexOf(':');
    const customVerb = colon > path.lastIndexOf('/') ? path.slice(colon + 1) : undefined;
    // A verb is cut off only where some route has it; any other colon is part of the last segment.
    if (customVerb !== undefined && customVerbs.has(customVerb)) {
      const match = find(root, splitPath(path.slice(0, colon)), customVerb, verb);
      if (match.kind !== 'nothing') return match;
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

function find(root: Node, path: SplitPath, customVerb: string | undefined, verb: string): Match {
  const trail = [root];
  for (const segment of path.segments) {
    const child = trail.at(-1)?.children.get(segment);
    if (child === undefined) break;
    trail.push(child);
  }
  const allow = new Set<Verb>();
  // More leading literals are narrower than anything else.
  for (let at = trail.length - 1; at >= 0; at--) {
    for (const entry of (trail[at] as Node).entries) {
      if (entry.template.customVerb !== customVerb || !matchesTemplate(entry.template, path.segments)) continue;
      if (entry.route.verb === verb) return found(entry, path);
      allow.add(entry.route.verb);
    }
  }
  refuseProblems(path, []);
  return allow.size === 0 ? { kind: 'nothing' } : { kind: 'other verbs', allow: [...allow] };
}

function found({ method, route, template }: Entry, path: SplitPath): Found {
  const captures = capturesOf(template, path.segments);
  refuseProblems(path, captures);
  const variables = captures.map(({ variable, from, to }) => ({
    field: variable,
    text: path.segments.slice(from, to).join('/'),
  }));
  return { kind: 'found', method, route, variables };
}

function refuseProblems({ problems }: SplitPath, captures: readonly Capture[]): void {
  for (const [index, description] of problems) {
    throw invalid(captures.find(({ from, to }) => from <= index && index < to)?.variable ?? 'path', description);
  }
}
