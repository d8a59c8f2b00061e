/** One segment of a path template. `**` (kind `many`) matches any number of path segments. */
export type Segment =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'one' | 'many'; readonly variable: string };

export interface Template {
  readonly segments: readonly Segment[];
  /** The index of `**` in `segments`; -1 when there is none. */
  readonly many: number;
  /** The segments that are variables, and their indexes. */
  readonly variables: readonly { readonly variable: string; readonly at: number }[];
  /** The custom verb of google.api.http, such as `lookupGroup` in `/iam/v2/groups:lookupGroup`. */
  readonly customVerb: string | undefined;
}

const LITERAL = /^[\w.~-]+$/;
const VARIABLE = /^\{([a-z_][\w.]*)(?:=(\*\*?))?\}$/;
const CUSTOM_VERB = /:(\w+)$/;

/** Parses a google.api.http template. Each variable must be one segment or `**`, and `**` may occur once. */
export function parseTemplate(template: string): Template {
  const customVerb = CUSTOM_VERB.exec(template)?.[1];
  const path = customVerb === undefined ? template : template.slice(0, -customVerb.length - 1);
  if (!path.startsWith('/')) throw new Error(`route ${template} does not start with a slash`);

  const segments = path
    .slice(1)
    .split('/')
    .map((text): Segment => {
      if (LITERAL.test(text)) return { kind: 'literal', text };
      const [, variable, pattern] = VARIABLE.exec(text) ?? [];
      if (variable === undefined) throw new Error(`route ${template} has a segment that is not supported: ${text}`);
      return { kind: pattern === '**' ? 'many' : 'one', variable };
    });
  const many = segments.findIndex(isMany);
  if (many !== segments.findLastIndex(isMany)) throw new Error(`route ${template} has more than one **`);
  const variables = segments.flatMap((segment, at) =>
    segment.kind === 'literal' ? [] : { variable: segment.variable, at },
  );
  return { segments, many, variables, customVerb };
}

const isMany = (segment: Segment) => segment.kind === 'many';

/** Sorts templates that match the same path: the more specific comes first. */
export const compareSpecificity = (a: Template, b: Template): number =>
  Number(a.many >= 0) - Number(b.many >= 0) || literals(b) - literals(a);

const literals = ({ segments }: Template) => segments.filter((segment) => segment.kind === 'literal').length;

export function matchesTemplate({ segments, many }: Template, path: readonly string[]): boolean {
  const taken = path.length - segments.length + 1;
  if (many < 0 ? taken !== 1 : taken < 0) return false;
  for (const [at, segment] of segments.entries()) {
    if (segment.kind === 'many') continue;
    const text = path[many >= 0 && at > many ? at + taken - 1 : at];
    if (segment.kind === 'literal' ? text !== segment.text : text === '') return false;
  }
  return true;
}

/** A variable and the path segments that it matches, from `from` to before `to`. */
export interface Capture {
  readonly variable: string;
  readonly from: number;
  readonly to: number;
}

/** The captures of a path that matches the template. */
export function capturesOf({ segments, many, variables }: Template, path: readonly string[]): Capture[] {
  const taken = path.length - segments.length + 1;
  return variables.map(({ variable, at }) => {
    const from = many >= 0 && at > many ? at + taken - 1 : at;
    return { variable, from, to: at === many ? from + taken : from + 1 };
  });
}
