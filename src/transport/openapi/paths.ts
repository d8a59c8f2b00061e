import type { Method, Route } from '../../contract/method.ts';

/** A variable of a route template, such as `{group.uid=**}`. */
export interface PathVariable {
  /** The request field that it sets: `group.uid`. */
  readonly field: string;
  /** Its name in the OpenAPI path: `uid`. */
  readonly name: string;
  /** Whether it is `**`, which matches any number of path segments. */
  readonly slashes: boolean;
}

/** One route of a method, and its path in the OpenAPI document. */
export interface OpenApiRoute {
  readonly method: Method;
  readonly route: Route;
  readonly path: string;
  readonly variables: readonly PathVariable[];
}

const VARIABLE = /\{([^}=]+)(?:=([^}]*))?\}/g;

const fieldsOf = (template: string): string[] => [...template.matchAll(VARIABLE)].map(([, field = '']) => field);

/** `/iam/v2/groups/{}`: in OpenAPI, paths that differ only in the names of their variables are the same path. */
const shapeOf = (template: string): string => template.replaceAll(VARIABLE, '{}');

/**
 * Assigns an OpenAPI path to every route. Routes of the same shape share a path and the names of its variables:
 * `{uid=**}`, `{parent=**}` and `{group.uid=**}` all become `{uid}`. Each variable keeps the field that it sets.
 */
export function openApiRoutes(methods: readonly Method[]): readonly OpenApiRoute[] {
  const routes = methods.flatMap((method) => method.routes.map((route) => ({ method, route })));
  const byShape = Map.groupBy(routes, ({ route }) => shapeOf(route.template));
  const taken = new Set<string>();

  return routes.map(({ method, route }) => {
    const siblings = byShape.get(shapeOf(route.template)) ?? [];
    const names = sharedNames(siblings.map((sibling) => fieldsOf(sibling.route.template)));
    // `{x=*}` and `{x=**}` with the same verb and shape need different variable names.
    for (let suffix = 1; ; suffix++) {
      const candidate = withNames({ method, route }, suffix === 1 ? names : names.map((name) => `${name}_${suffix}`));
      const key = `${route.verb} ${candidate.path}`;
      if (!taken.has(key)) {
        taken.add(key);
        return candidate;
      }
      if (names.length === 0) throw new Error(`openapi: ${method.id} has the route ${key} of another method`);
    }
  });
}

function withNames({ method, route }: Pick<OpenApiRoute, 'method' | 'route'>, names: readonly string[]): OpenApiRoute {
  const variables: PathVariable[] = [];
  const path = route.template.replaceAll(VARIABLE, (_, field: string, pattern = '*') => {
    const name = names[variables.length] ?? field;
    variables.push({ field, name, slashes: pattern.includes('**') });
    return `{${name}}`;
  });
  return { method, route, path, variables };
}

/** For each variable of a path the name that most of its routes use, without its parents: `uid` for `group.uid`. */
function sharedNames(routes: readonly (readonly string[])[]): string[] {
  const variables = routes[0] ?? [];
  return variables.map((_, index) => {
    const routesByName = Map.groupBy(routes, (fields) => fields[index]?.split('.').at(-1) ?? '');
    return [...routesByName].reduce((best, other) => (other[1].length > best[1].length ? other : best))[0];
  });
}
