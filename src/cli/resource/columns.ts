import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { plain } from '../output/text.ts';
import type { ResourceSpec } from './spec.ts';

/** The header of a table, and how a resource becomes a row of it. */
export function columnsOf(columns: ResourceSpec['columns']): {
  readonly header: readonly string[];
  readonly cells: (resource: JsonObject) => string[];
} {
  const places = Object.values(columns).map((paths) => [paths].flat());
  return {
    header: Object.keys(columns),
    cells: (resource) => places.map((paths) => plain(paths.map((path) => lookUp(resource, path)).find(isPresent))),
  };
}

const isPresent = (value: JsonValue | undefined): boolean => value !== undefined;

/** Also finds the length of a list: `capabilities.length`. */
const lookUp = (resource: JsonObject, path: string): JsonValue | undefined =>
  path
    .split('.')
    .reduce<JsonValue | undefined>(
      (at, name) =>
        typeof at === 'object' && at !== null && Object.hasOwn(at, name) ? (at as JsonObject)[name] : undefined,
      resource,
    );
