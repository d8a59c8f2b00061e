import type { ListingIndex } from '../../store/listing-indexes.ts';
import { PARTITION, type Resource } from '../definition.ts';

/*
 * The listing index of a kind, its unique keys and its references consist of parts. Which parts there are follows from the
 * declaration of the resource. The database records which of them are complete, so that a server notices a changed
 * declaration and builds what is missing (register-declarations.ts, index-builder.ts).
 *
 * - `scopes:…`: whose lists a resource belongs to, with the sizes of the unfiltered lists;
 * - `key:<order>`: the sort key in the row of the resource;
 * - `facet:<facet>`: the lists of a facet and their sizes; the facet `#` has the partitions;
 * - `entries:<facet>:<order>`: the entries of these lists in one order; the unfiltered lists have no facet name;
 * - `reference:<field>` and `unique`.
 *
 * Orders and facets have the names under which they are stored (`Resource.storedName`), so a new version of an order is
 * another part.
 */

const partsByResource = new WeakMap<Resource, readonly string[]>();

/** Returns the parts that a declaration needs. */
export function partsOf(resource: Resource): readonly string[] {
  const known = partsByResource.get(resource);
  if (known) return known;
  const parts = derivePartsOf(resource);
  partsByResource.set(resource, parts);
  return parts;
}

function derivePartsOf(resource: Resource): string[] {
  const { nests, isScope, hidden, facets = {}, references = {}, unique, listOrders, storedName } = resource;
  const scopes = ['descendants', ...(nests ? ['children'] : []), ...(isScope ? ['self'] : [])];
  const entries = (list: string, orders: readonly string[]) => orders.map((order) => entriesPart(list, order));
  const partition = storedName(PARTITION);
  return [
    `scopes:${scopes.join('+')}`,
    ...Object.keys(resource.storedSortKeys).map(keyPart),
    // The flags are the values of the partitions.
    ...(hidden
      ? [`${facetPart(partition)}(${Object.keys(hidden)})`, ...entries(partition, listOrders.partition)]
      : entries('', listOrders.whole)),
    ...Object.keys(facets).flatMap((field) => [
      facetPart(storedName(field)),
      ...entries(storedName(field), listOrders.facet),
    ]),
    ...Object.keys(references).map((field) => `reference:${storedName(field)}`),
    ...(unique ? [storedName('unique')] : []),
  ];
}

export const keyPart = (order: string): string => `key:${order}`;
export const facetPart = (facet: string): string => `facet:${facet}`;
export const entriesPart = (facet: string, order: string): string => `entries:${facet}:${order}`;

/** The facet of a list: `''` for an unfiltered one, and `color` for the list `color=red`. */
export function facetOfList(list: string): string {
  const end = list.indexOf('=');
  return end < 0 ? '' : list.slice(0, end);
}

/** Whether requests depend on a part for access or uniqueness, so that it must be complete before a server serves. */
export const isNeededToServe = (part: string): boolean => /^(?:scopes:|reference:|unique)/.test(part);

/** A part, taken apart. */
export interface PartName {
  readonly type: 'scopes' | 'key' | 'facet' | 'entries' | 'reference' | 'unique';
  /** The facet of `facet` and `entries`, the order of `key`, the field of `reference`. */
  readonly name: string;
  /** The order of `entries`. */
  readonly order: string;
}

export function parsePart(part: string): PartName {
  const [type = '', name = '', order = ''] = part.split(':');
  const isUnique = type.startsWith('unique');
  return {
    type: (isUnique ? 'unique' : type) as PartName['type'],
    // Without the flags of a partition.
    name: name.replace(/\(.*$/, ''),
    order,
  };
}

/** A set of parts, with the questions that the index asks about it. */
export interface PartSet {
  readonly parts: ReadonlySet<string>;
  hasFacet(facet: string): boolean;
  hasEntries(facet: string, order: string): boolean;
}

export function partSet(parts: Iterable<string>): PartSet {
  const all = new Set(parts);
  const facets = new Set([...all].map(parsePart).flatMap(({ type, name }) => (type === 'facet' ? [name] : [])));
  return {
    parts: all,
    hasFacet: (facet) => facets.has(facet),
    hasEntries: (facet, order) => all.has(entriesPart(facet, order)),
  };
}

/** Several resources can have the same kind, because some operations present it in another way. */
const missingByIndex = new WeakMap<ListingIndex, Map<Resource, PartSet | undefined>>();

/**
 * Returns the declared parts that do not have all resources yet, or undefined if there are none. A kind that the database
 * has no record of has been written by this version only, so nothing is missing.
 */
export function missingParts(resource: Resource, index: ListingIndex | undefined): PartSet | undefined {
  if (!index) return undefined;
  let known = missingByIndex.get(index);
  if (!known) {
    known = new Map();
    missingByIndex.set(index, known);
  }
  if (!known.has(resource)) {
    const absent = partsOf(resource).filter((part) => !index.parts.has(part));
    known.set(resource, absent.length > 0 ? partSet(absent) : undefined);
  }
  return known.get(resource);
}
