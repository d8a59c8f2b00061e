import { invalid } from '../../base/errors.ts';
import type { Resource } from '../definition.ts';

export interface Term {
  /** A sort key of the resource. */
  readonly field: string;
  readonly descending: boolean;
}

/** The order of a list: by its terms, then by uid. */
export interface Order {
  readonly terms: readonly Term[];
  /** The direction of the first term, unless the request orders by uid: then one index scan returns this order. */
  readonly uidDescending: boolean;
}

/** For reads whose order does not matter. */
export const UNORDERED: Order = { terms: [], uidDescending: false };

/** Returns the same order with the names under which its fields are stored. */
export function storedOrder({ indexVersions, storedName }: Resource, order: Order): Order {
  if (!indexVersions) return order;
  return { ...order, terms: order.terms.map((term) => ({ ...term, field: storedName(term.field) })) };
}

const ALIASES: Readonly<Record<string, string>> = {
  created_at: 'create_time',
  updated_at: 'update_time',
};

const MAX_TERMS = 5;

/** Parses `name`, `name desc` or `name desc, create_time`. */
export function parseOrder(resource: Resource, text: string): Order {
  const source = text.trim() === '' ? (resource.defaultOrder ?? 'uid') : text;
  const parts = source.split(',');
  if (parts.length > MAX_TERMS) throw invalid('order_by', `must name at most ${MAX_TERMS} fields`);
  const fields = [...Object.keys(resource.sortKeys), 'uid'];
  const terms = parts.map((part) => parseTerm(part, fields));
  const repeated = terms.find((term, at) => terms.findIndex((t) => t.field === term.field) < at);
  if (repeated) throw invalid('order_by', `must name ${repeated.field} only once`);
  // Terms after uid have no effect, because uid is unique.
  const end = terms.findIndex((term) => term.field === 'uid');
  const [first] = terms;
  return end < 0
    ? { terms, uidDescending: first?.descending ?? false }
    : { terms: terms.slice(0, end), uidDescending: terms[end]?.descending ?? false };
}

function parseTerm(part: string, fields: readonly string[]): Term {
  const [word = '', direction = 'asc', ...rest] = part.trim().split(/\s+/);
  const snakeCase = word.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const field = ALIASES[snakeCase] ?? snakeCase;
  if (!fields.includes(field)) {
    throw invalid('order_by', `must be one of ${fields.join(', ')}, optionally followed by asc or desc`);
  }
  if (rest.length > 0 || !['asc', 'desc'].includes(direction.toLowerCase())) {
    throw invalid('order_by', `must have only asc or desc after ${field}`);
  }
  return { field, descending: direction.toLowerCase() === 'desc' };
}
