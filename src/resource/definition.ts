import type { DescMessage, Message, MessageShape } from '@bufbuild/protobuf';
import type { FieldViolation } from '../base/errors.ts';
import type { Maybe, Reader } from '../store/store.ts';
import type { ReadContext, WriteContext } from './operation.ts';

/** Says what is wrong with a value, or nothing when it is right. */
export type Rule<T = unknown> = (value: T) => string | undefined;

/** A stored resource: its wire message, and what is not on the wire. */
export interface Stored<M extends Message = Message> {
  readonly uid: string;
  readonly parent: string;
  readonly created: number;
  readonly updated: number;
  /** Complete, including uid and times. */
  readonly message: M;
  readonly state: State | undefined;
}

/** Where a new resource goes. */
export interface Place {
  readonly uid: string;
  readonly parent: string;
}

/** What a resource keeps to itself: hashes, encrypted secrets, flags. */
export type State = Readonly<Record<string, unknown>>;

/**
 * Everything the engine needs to give a resource get, list, create, update and delete.
 * Functions take the message, so that what is stored follows from the message alone.
 */
export interface ResourceSpec<S extends DescMessage, M = MessageShape<S>> {
  /** Singular, for people and for the store: `role binding`. */
  readonly kind: string;
  /** For people: `role bindings`. */
  readonly plural: string;
  readonly schema: S;
  /** Kinds that may hold this one; ROOT when it can stand alone. */
  readonly parents: readonly string[];
  /** A binding can be made at such a resource, so it is visible to whoever reaches itself. Groups only. */
  readonly isScope?: boolean;
  /** Root-level ones are visible to everybody, as built-in roles are. */
  readonly rootIsPublic?: boolean;
  /** At most one per parent, under the uid of the parent itself. */
  readonly sharesParentUid?: boolean;
  /** The request field that names the one parent whose children a List reads, where there is no hierarchy filter. */
  readonly listedUnder?: string;
  /** Deleting what is not there is fine. */
  readonly deletesTwice?: boolean;
  /**
   * A change of one may take access away, so that nobody may go on with what they knew (src/access). Of some that cannot
   * be said as long as they are new: nothing refers to them yet.
   */
  readonly grantsAccess?: boolean | 'unless new';
  /** Kinds that go along when this one is deleted. Children of any other kind forbid the deletion. */
  readonly cascade?: readonly string[];
  /** Checks by proto field name, after presence. */
  readonly rules?: Readonly<Record<string, Rule<never>>>;
  /** Checks over several fields. */
  check?(message: M): readonly FieldViolation[];
  /** Keys of which only one may exist in the kind, such as parent and name. */
  unique?(message: M, parent: string): readonly UniqueKey[];
  /**
   * Values to find resources by, whoever asks: `references: { identity: (b) => [b.identityUid] }`. They also serve
   * filters of the same name where few resources share a value: cheaper to keep than a facet, dearer to page.
   */
  readonly references?: Readonly<Record<string, (message: M) => readonly string[]>>;
  /** Orders besides uid, create_time and update_time, by proto name. Text compares bytewise. */
  readonly orders?: Readonly<Record<string, (message: M) => string>>;
  /** Orders that so few ask for that a list is sorted for each of them, and no index rows are kept. */
  readonly rareOrders?: Readonly<Record<string, (message: M) => string>>;
  /** The order of a list that asks for none. */
  readonly defaultOrder?: string;
  /** Filters by request field; below each ancestor, each value keeps a sorted list and a count of its own. */
  readonly facets?: Readonly<Record<string, (message: M, state: State | undefined) => readonly string[]>>;
  /** The orders that these lists are kept in, where not all of them are worth their writes; at least one. */
  readonly facetOrders?: readonly string[];
  /** Filters by request field that do not just ask for any value of the facet or reference of the same name. */
  readonly filters?: Readonly<Record<string, FilterSpec>>;
  /** What lists leave out unless the request sets a flag, by request field. The first that fits counts. */
  readonly hidden?: Readonly<Record<string, (message: M) => boolean>>;
  /** Filters for what is not earlier than a time, by request field: `{ updated_since: 'update_time' }`. */
  readonly since?: Readonly<Record<string, 'create_time' | 'update_time'>>;
  /** Filters that name the wanted resources otherwise than by uid, where these are few and quickly found. */
  readonly named?: Named;

  /** Finds the parent that a create asks for, where the contract leaves checking it to the handler. */
  resolveParent?(ctx: WriteContext, asked: string): Maybe<string>;
  /** Last word on a new message: defaults, and refusals that need the database. */
  beforeCreate?(ctx: WriteContext, message: M, at: Place): Maybe<State | undefined>;
  /** `touched` has the top-level fields that the mask names, and each of its paths in full: `oidc`, `oidc.issuer`. */
  beforeUpdate?(ctx: WriteContext, before: Stored, after: M, touched: ReadonlySet<string>): Maybe<State | undefined>;
  beforeDelete?(ctx: WriteContext, stored: Stored): Maybe<void>;
  afterCreate?(ctx: WriteContext, stored: Stored): Maybe<void>;
  /** Turns stored messages into what readers get: hydrated references, computed fields. */
  present?(ctx: ReadContext, messages: M[]): Maybe<void>;
  /** Which messages `present` may change; all of them unless this tells. */
  presents?(message: M): boolean;
  /** Where the event of a change belongs, when not to uid and parent, and extensions of it besides `group`. */
  event?(change: 'create' | 'update' | 'delete', message: M): EventPlace;
}

/** Which facet or reference a filter asks, and how; or what all a text asks for, such as the words of a search. */
export type FilterSpec =
  | { readonly anyOf: string; as?(value: string): string }
  | { readonly noneOf: string }
  | { allOf(text: string): readonly { readonly field: string; readonly values: readonly string[] }[] };

export interface Named {
  readonly fields: readonly string[];
  /** The uids of those within reach that a request names; nothing when it names none. */
  uids(db: Reader, request: Message, reach: readonly string[]): Maybe<readonly string[] | undefined>;
}

export interface EventPlace {
  readonly subject?: string;
  readonly group?: string;
  readonly extensions?: Readonly<Record<string, string>>;
  /** The event says that something happened, and nothing more about it. */
  readonly withoutBody?: boolean;
}

export interface UniqueKey {
  readonly key: string;
  /** Why a second one is refused, such as `a group named x exists in …`. */
  readonly taken: string;
}

export interface Resource<S extends DescMessage = DescMessage> extends ResourceSpec<S> {
  /** Whether children and descendants differ: not below parents that cannot nest, such as repos. */
  readonly nests: boolean;
  /** Sort keys kept for each resource; `uid` needs none. */
  readonly sortKeys: Readonly<Record<string, (stored: Stored) => string>>;
  /** What rows are found by: references, facets and PART. */
  readonly values: Readonly<Record<string, (message: Message, state?: State) => ReadonlySet<string>>>;
  /** The orders of whole lists, of the lists of facets, and of parts. The first of facets also serves to look for a row. */
  readonly listOrders: {
    readonly whole: readonly string[];
    readonly facet: readonly string[];
    readonly part: readonly string[];
  };
}

/** Stands for the part of a list among `values`. */
export const PART = '#';

/** The part of a list that is always shown. Others bear the name of the flag that shows them. */
export const SHOWN = '';

/** Times sort as text, padded to a fixed width. */
export const timeKey = (ms: number): string => String(ms).padStart(15, '0');

export function defineResource<S extends DescMessage>(spec: ResourceSpec<S>): Resource<S> {
  const nests = spec.parents.some((kind) => kind === 'group' || kind === '/');
  const sortKeys = sortKeysOf(spec);
  const whole = Object.keys(sortKeys).filter((order) => !(order in (spec.rareOrders ?? {})));
  const orders = ['uid', ...whole];
  const listOrders = { whole, facet: spec.facetOrders ?? orders, part: orders };
  return { ...spec, nests, sortKeys, values: valuesOf(spec), listOrders };
}

function sortKeysOf<S extends DescMessage>({ orders, rareOrders }: ResourceSpec<S>): Resource['sortKeys'] {
  const sortKeys: Record<string, (stored: Stored) => string> = {
    create_time: (stored) => timeKey(stored.created),
    update_time: (stored) => timeKey(stored.updated),
  };
  for (const [order, keyOf] of Object.entries({ ...orders, ...rareOrders })) {
    sortKeys[order] = (stored) => keyOf(stored.message as MessageShape<S>);
  }
  return sortKeys;
}

function valuesOf<S extends DescMessage>({ references, facets, hidden }: ResourceSpec<S>): Resource['values'] {
  const values: Record<string, (message: Message, state?: State) => ReadonlySet<string>> = {};
  for (const [field, read] of Object.entries({ ...references, ...facets })) {
    // Nobody can ask for what is not there.
    values[field] = (message, state) =>
      new Set(read(message as MessageShape<S>, state).filter((value) => value !== ''));
  }
  if (hidden) {
    const flags = Object.entries(hidden);
    values[PART] = (message) =>
      new Set([flags.find(([, isHidden]) => isHidden(message as MessageShape<S>))?.[0] ?? SHOWN]);
  }
  return values;
}
