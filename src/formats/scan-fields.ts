import { damaged, type Fields, fieldsOf, listOf, textOf, timeOf } from './reading.ts';

/** An object of a scanner's report, and where it stands in it, such as `matches[3].vulnerability`. */
export interface Node {
  readonly path: string;
  readonly fields: Fields;
}

const MAX_TEXT = 4096;
const MAX_ID = 256;
const MAX_LIST = 1000;
const ID = /^[^\s\p{Cc}]+$/u;

const pathOf = ({ path }: Node, key: string): string => (path === '' ? key : `${path}.${key}`);

export const nodeOf = (value: unknown, path: string): Node => ({ path, fields: fieldsOf(value, path) });

/** The object under a key; an empty one when there is none. */
export const child = (node: Node, key: string): Node => nodeOf(node.fields[key] ?? {}, pathOf(node, key));

/** The objects under a key; none when there is no list. */
export const children = (node: Node, key: string, most = MAX_LIST): Node[] =>
  itemsOf(node, key, most).map((item, at) => nodeOf(item, `${pathOf(node, key)}[${at}]`));

/** The objects of a map. */
export const members = (node: Node): Node[] =>
  Object.entries(node.fields).map(([key, value]) => nodeOf(value, pathOf(node, key)));

/** The text under a key; empty when there is none. */
export const text = (node: Node, key: string): string => cut(textOf(node.fields[key], pathOf(node, key)));

export const texts = (node: Node, key: string, most = MAX_LIST): string[] =>
  itemsOf(node, key, most).map((item, at) => cut(textOf(item, `${pathOf(node, key)}[${at}]`)));

/** Nobody reads on, and whoever does has the report itself. */
const cut = (value: string): string => (value.length > MAX_TEXT ? value.slice(0, MAX_TEXT).toWellFormed() : value);

/** The name of a vulnerability, without which a finding says nothing. */
export function id(node: Node, key: string): string {
  const value = text(node, key);
  if (value.length <= MAX_ID && ID.test(value)) return value;
  throw damaged(pathOf(node, key), `must be one word of at most ${MAX_ID} characters`);
}

/** A number as people write it; empty when there is none. */
export function number(node: Node, key: string): string {
  const value = node.fields[key] ?? '';
  if (value === '') return '';
  if (typeof value !== 'number') throw damaged(pathOf(node, key), 'must be a number');
  return value.toFixed(1);
}

/** A time in milliseconds. Go writes a time that was never set as the year 1. */
export function time(node: Node, key: string): number | undefined {
  const value = node.fields[key] ?? '';
  if (value === '') return undefined;
  const ms = Date.parse(timeOf(value, pathOf(node, key)));
  return ms > 0 ? ms : undefined;
}

function itemsOf(node: Node, key: string, most: number): readonly unknown[] {
  const items = listOf(node.fields[key], pathOf(node, key));
  if (items.length > most) throw damaged(pathOf(node, key), `must have at most ${most} items`);
  return items;
}
