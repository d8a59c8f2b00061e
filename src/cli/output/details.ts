import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { plain, visible } from './text.ts';

/** The most lines of a list that is not the resource's own. */
const SIDELINE = 5;

/** One resource, a line for each value: `claimMatch.issuer  https://…`. */
export function detailsText(object: JsonObject): string {
  const lines = linesOf(object, '').map(([name, value]) => [visible(name), value] as const);
  const width = Math.max(0, ...lines.map(([name]) => name.length));
  return lines.map(([name, value]) => `${`${name.padEnd(width)}  ${value}`.trimEnd()}\n`).join('');
}

function linesOf(object: JsonObject, prefix: string): [name: string, value: string][] {
  return Object.entries(object).flatMap(([key, value]): [string, string][] => {
    if (Array.isArray(value)) {
      // What belongs to the resource itself is shown in full; the rest would bury it.
      if (prefix !== '' && value.length > SIDELINE) return [[prefix + key, `${value.length} values`]];
      return value.map((item, at) => [at === 0 ? prefix + key : '', plain(item)]);
    }
    return isObject(value) ? linesOf(value, `${prefix}${key}.`) : [[prefix + key, plain(value)]];
  });
}

const isObject = (value: JsonValue): value is JsonObject => typeof value === 'object' && value !== null;
