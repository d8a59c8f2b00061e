import type { Method, Route } from '../../contract/method.ts';

/** A variable of a route template, such as `{group.uid=**}`. */
export interface PathVariable {
  /** The request field it fills: `group.uid`. */
  readonly field: string;
  /** What the OpenAPI path calls it: `uid`. */
  readonly name: string;
  /** `**`: takes any number of path segments. */
  readonly slashes: boolean;
}

/** A method under one of its routes, and its place in an OpenAPI document. */
export interface Placed {
  readonly method: Method;
  readonly route: Route;
  readonly path: string;
  readonly variables: readonly PathVariable[];
}

const VARIABLE = /\{([^}=]+)(?:=([^}]*))?\}/g;

const fieldsOf = (template: string): string[] => [...template.matchAll(VARIABLE)].map(([, field = '']) => field);

/** `/iam/v2/groups/{}`: to OpenAPI, two paths that differ only in the names of their variables are the same path. */
const shapeOf = (template: string): string => template.replaceAll(VARIABLE, '{}');

/**
 * Gives every route its OpenAPI path. Routes of one shape share a path, and with it the names of its variables:
 * `{uid=**}`, `{parent=**}` and `{group.uid=**}` all become `{uid}`, each with a note on the field it fills.
 */
export function placeRoutes(methods: readonly Method[]): readonly Placed[] {
  const routes = methods.flatMap((method) => method.routes.map((route) => ({ method, route })));
  const byShape = Map.groupBy(routes, ({ route }) => shapeOf(route.template));
  const taken = new Set<string>();

  return routes.map(({ method, route }) => {
    const siblings = byShape.get(shapeOf(route.template)) ?? [];
    const names = sharedNames(siblings.map((sibling) => fieldsOf(sibling.route.template)));
    // Where `{x=*}` and `{x=**}` share verb and shape, only another name tells them apart.
    for (let turn = 1; ; turn++) {
      const placed = place({ method, route }, turn === 1 ? names : names.map((name) => `${name}_${turn}`));
      const key = `${route.verb} ${placed.path}`;
      if (!taken.has(key)) {
        taken.add(key);
        return placed;
      }
      if (names.length === 0) throw new Error(`openapi: ${method.id} claims ${key}, which another method has`);
    }
  });
}

function place({ method, route }: Pick<Placed, 'method' | 'route'>, names: readonly string[]): Placed {
  const variables: PathVariable[] = [];
  const path = route.template.replaceAll(VARIABLE, (_, field: string, pattern = '*') => {
    const name = names[variables.length] ?? field;
    variables.push({ field, name, slashes: pattern.includes('**') });
    return `{${name}}`;
  });
  return { method, route, path, variables };
}

/** For each place of a path the name that most of its routes use, without what leads to it: `uid` for `group.uid`. */
function sharedNames(routes: readonly (readonly string[])[]): string[] {
  const places = routes[0] ?? [];
  return places.map((_, place) => {
    const votes = Map.groupBy(routes, (fields) => fields[place]?.split('.').at(-1) ?? '');
    return [...votes].reduce((best, vote) => (vote[1].length > best[1].length ? vote : best))[0];
  });
}
