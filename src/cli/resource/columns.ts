import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { formatValue } from '../output/text.ts';
import type { CommandSpec } from './command-spec.ts';

/** Returns the header of a table and a function that formats a resource as a row. */
export function columnsOf(columns: CommandSpec['columns']): {
  readonly header: readonly string[];
  readonly cells: (resource: JsonObject) => string[];
} {
  const pathLists = Object.values(columns).map((paths) => [paths].flat());
  return {
    header: Object.keys(columns),
    cells: (resource) =>
      pathLists.map((paths) => formatValue(paths.map((path) => valueAtPath(resource, path)).find(isPresent))),
  };
}

const isPresent = (value: JsonValue | undefined): boolean => value !== undefined;

/** The path can end with the length of a list: `capabilities.length`. */
const valueAtPath = (resource: JsonObject, path: string): JsonValue | undefined =>
  path
    .split('.')
    .reduce<JsonValue | undefined>(
      (value, name) =>
        typeof value === 'object' && value !== null && Object.hasOwn(value, name)
          ? (value as JsonObject)[name]
          : undefined,
      resource,
    );
