import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { escapeForTerminal, formatValue } from './text.ts';

/** A longer list in a nested message is printed as its length. */
const MAX_NESTED_VALUES = 5;

/** Formats a resource with one line per value: `claimMatch.issuer  https://…`. */
export function detailsText(object: JsonObject): string {
  const lines = linesOf(object, '').map(([name, value]) => [escapeForTerminal(name), value] as const);
  const width = Math.max(0, ...lines.map(([name]) => name.length));
  return lines.map(([name, value]) => `${`${name.padEnd(width)}  ${value}`.trimEnd()}\n`).join('');
}

function linesOf(object: JsonObject, prefix: string): [name: string, value: string][] {
  return Object.entries(object).flatMap(([key, value]): [string, string][] => {
    if (Array.isArray(value)) {
      if (prefix !== '' && value.length > MAX_NESTED_VALUES) return [[prefix + key, `${value.length} values`]];
      return value.map((item, index) => [index === 0 ? prefix + key : '', formatValue(item)]);
    }
    return isObject(value) ? linesOf(value, `${prefix}${key}.`) : [[prefix + key, formatValue(value)]];
  });
}

const isObject = (value: JsonValue): value is JsonObject => typeof value === 'object' && value !== null;
