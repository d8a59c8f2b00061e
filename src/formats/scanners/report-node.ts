import type { JsonObject } from '../lenient-json.ts';
import { listOf, malformed, requireObject, requireTime, textOf } from '../strict-json.ts';

/** An object in a scanner's report with its path, such as `matches[3].vulnerability`. */
export interface ReportNode {
  readonly path: string;
  readonly fields: JsonObject;
}

const MAX_TEXT_LENGTH = 4096;
const MAX_ID_LENGTH = 256;
const MAX_ITEMS = 1000;
const ID = /^[^\s\p{Cc}]+$/u;

const pathOf = ({ path }: ReportNode, key: string): string => (path === '' ? key : `${path}.${key}`);

export const toNode = (value: unknown, path: string): ReportNode => ({ path, fields: requireObject(value, path) });

/** The object at a key. Empty if the key is absent. */
export const child = (node: ReportNode, key: string): ReportNode => toNode(node.fields[key] ?? {}, pathOf(node, key));

/** The objects of the list at a key. Empty if the key is absent. */
export const children = (node: ReportNode, key: string, maxItems = MAX_ITEMS): ReportNode[] =>
  itemsOf(node, key, maxItems).map((item, index) => toNode(item, `${pathOf(node, key)}[${index}]`));

/** The values of an object whose keys are names, such as CVSS sources. */
export const members = (node: ReportNode): ReportNode[] =>
  Object.entries(node.fields).map(([key, value]) => toNode(value, pathOf(node, key)));

/** The string at a key. Empty if the key is absent. */
export const textAt = (node: ReportNode, key: string): string => truncate(textOf(node.fields[key], pathOf(node, key)));

export const textsAt = (node: ReportNode, key: string, maxItems = MAX_ITEMS): string[] =>
  itemsOf(node, key, maxItems).map((item, index) => truncate(textOf(item, `${pathOf(node, key)}[${index}]`)));

/** Long descriptions are truncated. The stored report has the full text. */
const truncate = (value: string): string =>
  value.length > MAX_TEXT_LENGTH ? value.slice(0, MAX_TEXT_LENGTH).toWellFormed() : value;

/** The required id of a vulnerability. */
export function idAt(node: ReportNode, key: string): string {
  const value = textAt(node, key);
  if (value.length <= MAX_ID_LENGTH && ID.test(value)) return value;
  throw malformed(pathOf(node, key), `must be one word of at most ${MAX_ID_LENGTH} characters`);
}

/** A number with one decimal place, such as a CVSS score. Empty if the key is absent. */
export function decimalAt(node: ReportNode, key: string): string {
  const value = node.fields[key] ?? '';
  if (value === '') return '';
  if (typeof value !== 'number') throw malformed(pathOf(node, key), 'must be a number');
  return value.toFixed(1);
}

/** A time in milliseconds. Scanners in Go write an unset time as the year 1, which is returned as undefined. */
export function timeAt(node: ReportNode, key: string): number | undefined {
  const value = node.fields[key] ?? '';
  if (value === '') return undefined;
  const ms = Date.parse(requireTime(value, pathOf(node, key)));
  return ms > 0 ? ms : undefined;
}

function itemsOf(node: ReportNode, key: string, maxItems: number): readonly unknown[] {
  const items = listOf(node.fields[key], pathOf(node, key));
  if (items.length > maxItems) throw malformed(pathOf(node, key), `must have at most ${maxItems} items`);
  return items;
}
