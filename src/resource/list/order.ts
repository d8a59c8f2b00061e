import { invalid } from '../../base/errors.ts';
import type { Resource } from '../definition.ts';

export interface Term {
  /** A sort key of the resource: a column of its listing index. */
  readonly field: string;
  readonly descending: boolean;
}

/** How a list is sorted: by its terms, then by uid. */
export interface Order {
  readonly terms: readonly Term[];
  /** Ties go the way of the first term, so that one index scan serves them. */
  readonly uidDescending: boolean;
}

/** For those who count, or look for one. */
export const UNORDERED: Order = { terms: [], uidDescending: false };

const ALIASES: Readonly<Record<string, string>> = {
  created_at: 'create_time',
  createTime: 'create_time',
  updated_at: 'update_time',
  updateTime: 'update_time',
};

const MAX_TERMS = 5;

/** Reads `name`, `name desc` or `name desc, create_time`. */
export function parseOrder(resource: Resource, text: string): Order {
  const source = text.trim() === '' ? (resource.defaultOrder ?? 'uid') : text;
  const parts = source.split(',');
  if (parts.length > MAX_TERMS) throw invalid('order_by', `must name at most ${MAX_TERMS} fields`);
  const known = [...Object.keys(resource.sortKeys), 'uid'];
  const terms = parts.map((part) => parseTerm(part, known));
  const repeated = terms.find((term, at) => terms.findIndex((t) => t.field === term.field) < at);
  if (repeated) throw invalid('order_by', `${repeated.field} is named twice`);
  // uid is unique: whatever follows it cannot matter.
  const end = terms.findIndex((term) => term.field === 'uid');
  const [first] = terms;
  return end < 0
    ? { terms, uidDescending: first?.descending ?? false }
    : { terms: terms.slice(0, end), uidDescending: terms[end]?.descending ?? false };
}

function parseTerm(part: string, known: readonly string[]): Term {
  const [word = '', direction = 'asc', ...rest] = part.trim().split(/\s+/);
  const field = ALIASES[word] ?? word;
  if (!known.includes(field)) {
    throw invalid('order_by', `must be one of ${known.join(', ')}, optionally followed by asc or desc`);
  }
  if (rest.length > 0 || !['asc', 'desc'].includes(direction.toLowerCase())) {
    throw invalid('order_by', `${field} can be followed by asc or desc only`);
  }
  return { field, descending: direction.toLowerCase() === 'desc' };
}
