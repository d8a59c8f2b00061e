import type { DescMessage, Message, MessageShape } from '@bufbuild/protobuf';
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import type { FieldViolation } from '../base/errors.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import { type ParentUid, ROOT, type Uid } from '../base/uid.ts';
import type { Reader } from '../store/store.ts';
import type { ReadContext, WriteContext } from './operation.ts';

/** Returns what is wrong with a value, or undefined when it is valid. */
export type Rule<T = unknown> = (value: T) => string | undefined;

/** A resource as the database holds it: its message, and what clients do not see. */
export interface Stored<M extends Message = Message> {
  readonly uid: Uid;
  readonly parent: ParentUid;
  readonly created: number;
  readonly updated: number;
  /** Complete, including uid and times. */
  readonly message: M;
  readonly state: State | undefined;
}

/** The uid of a resource that is being created, and its parent. */
export interface NewResource {
  readonly uid: Uid;
  readonly parent: ParentUid;
}

/** Data of a resource that no client sees: hashes, encrypted secrets, flags. */
export type State = Readonly<Record<string, unknown>>;

/**
 * The declaration of a resource. From it the engine derives get, list, create, update and delete. Functions get the
 * message, so that everything the store derives follows from the message alone.
 *
 * To filter a list by a request field, declare under the name of the field:
 * - `orders`, if lists are sorted by it too: one exact value, such as a name;
 * - `facets`, if many resources share a value: lists of a value page as fast as the whole list;
 * - `references`, if few resources share a value: cheaper to write;
 * - `filters`, if the request field is not simply a value of a facet or reference, such as a search text;
 * - `hidden`, for a flag that includes resources which lists omit;
 * - `since` and `before`, for a lower and an upper bound of a time;
 * - `lookupFilter`, for fields that name a few resources directly.
 */
export interface ResourceSpec<S extends DescMessage, M extends Message = MessageShape<S>> {
  /** Singular, for messages to people and for the store: `role binding`. */
  readonly kind: string;
  /** For messages to people: `role bindings`. */
  readonly plural: string;
  readonly schema: S;
  /** The kinds that can be its parent; ROOT when it needs none. */
  readonly parents: readonly string[];
  /** Roles can be bound at it, so that callers who reach it can see it. True for groups only. */
  readonly isScope?: boolean;
  /** Resources at the root are visible to everybody, as built-in roles are. */
  readonly rootIsPublic?: boolean;
  /** At most one per parent, which has the uid of the parent. */
  readonly sharesParentUid?: boolean;
  /** The request field with the parent whose children a List returns, where the request has no hierarchy filter. */
  readonly listedUnder?: string;
  /** The facet that has the parent, by which a List can be filtered beside its hierarchy filter. */
  readonly parentFilter?: string;
  /** Deleting a resource that does not exist succeeds. */
  readonly idempotentDelete?: boolean;
  /**
   * A change of such a resource can change what callers may do, so it invalidates cached grants (src/access). With
   * `unless new`, creating one does not: nothing refers to it yet.
   */
  readonly grantsAccess?: boolean | 'unless new';
  /** Kinds of children that are deleted with it. Children of any other kind prevent the deletion. */
  readonly cascade?: readonly string[];
  /** Checks by proto field name. They run for fields that are set. */
  readonly rules?: Readonly<Record<string, Rule<never>>>;
  /** Checks that involve several fields. */
  check?(message: M): readonly FieldViolation[];
  /** Keys of which only one may exist per kind, such as parent and name. */
  unique?(message: M, parent: string): readonly UniqueKey[];
  /**
   * Values by which resources are found, such as `references: { identity: (b) => [b.identityUid] }`. A filter of the same
   * name uses them too. A reference costs less to store than a facet and more to page, so it suits values that few
   * resources share.
   */
  readonly references?: Readonly<Record<string, (message: M, state: State | undefined) => readonly string[]>>;
  /**
   * Sort orders besides uid, create_time and update_time, by proto name. Text compares bytewise; `timestampKey` makes a
   * text of a time. A request field of the same name filters by the exact value.
   */
  readonly orders?: Readonly<Record<string, (message: M) => string>>;
  /** Sort orders that are seldom used: such a list is sorted when it is read, and has no index rows. */
  readonly rareOrders?: Readonly<Record<string, (message: M) => string>>;
  /** The order of a list whose request names none. */
  readonly defaultOrder?: string;
  /** Filters by request field. For each ancestor and each value, the listing index holds a sorted list and its size. */
  readonly facets?: Readonly<Record<string, (message: M, state: State | undefined) => readonly string[]>>;
  /** The orders in which the lists of facets are kept, if not all orders need index rows. At least one. */
  readonly facetOrders?: readonly string[];
  /** Filters by request field that do more than select the values of the facet or reference of the same name. */
  readonly filters?: Readonly<Record<string, FilterSpec>>;
  /**
   * The versions of orders, facets and references, by name, of `unique`, and of `hidden` under `#`. A version is 1 until
   * it is raised here. Raise it if a function returns other values for the same resource than in the release before: the
   * listing index of existing resources is then rebuilt (index/index-parts.ts).
   */
  readonly indexVersions?: Readonly<Record<string, number>>;
  /** Resources that lists omit unless the request sets a flag, by the request field of the flag. The first match counts. */
  readonly hidden?: Readonly<Record<string, (message: M) => boolean>>;
  /** Lower bounds for a time, by request field: `{ updated_since: 'update_time' }`. */
  readonly since?: Readonly<Record<string, 'create_time' | 'update_time'>>;
  /** Upper bounds for a time, by request field. A resource of exactly that time is not in the list. */
  readonly before?: Readonly<Record<string, 'create_time' | 'update_time'>>;
  /** Filters that name a few resources by something other than their uid. */
  readonly lookupFilter?: LookupFilter;

  /** Finds the parent that a create request names, where the contract leaves the authorization to the handler. */
  resolveParent?(ctx: WriteContext, asked: string): MaybePromise<ParentUid>;
  /** Sets defaults in a new message and refuses what needs the database to check. Returns the private state. */
  beforeCreate?(ctx: WriteContext, message: M, at: NewResource): MaybePromise<State | undefined>;
  /** `touched` has the top-level fields that the mask names and each of its full paths: `oidc`, `oidc.issuer`. */
  beforeUpdate?(
    ctx: WriteContext,
    before: Stored<M>,
    after: M,
    touched: ReadonlySet<string>,
  ): MaybePromise<State | undefined>;
  afterUpdate?(ctx: WriteContext, before: Stored<M>, after: Stored<M>): MaybePromise<void>;
  beforeDelete?(ctx: WriteContext, stored: Stored<M>): MaybePromise<void>;
  afterCreate?(ctx: WriteContext, stored: Stored<M>): MaybePromise<void>;
  /** Turns stored messages into those that clients get: hydrated references, computed fields. */
  present?(ctx: ReadContext, messages: M[]): MaybePromise<void>;
  /** Whether `present` changes this message. Without this function, it may change any. */
  needsPresent?(message: M): boolean;
  /** Deviations from the usual event of a change, whose subject is the uid and whose group is the parent. */
  event?(change: ChangeKind, message: M): EventOverride;
}

export type ChangeKind = 'create' | 'update' | 'delete';

/** Which facet or reference a filter uses, and how; or all the filters that a text stands for, such as a search. */
export type FilterSpec =
  | { readonly anyOf: string; as?(value: string): string }
  | { readonly noneOf: string }
  | { allOf(text: string): readonly { readonly field: string; readonly values: readonly string[] }[] };

export interface LookupFilter {
  readonly fields: readonly string[];
  /** The uids within `reach` that a request names; undefined when it names none. */
  uids(db: Reader, request: Message, reach: readonly Uid[]): MaybePromise<readonly Uid[] | undefined>;
}

export interface EventOverride {
  readonly subject?: string;
  readonly group?: string;
  /** Extension attributes besides `group`. */
  readonly extensions?: Readonly<Record<string, string>>;
  /** The body, if it is not the message that the response shows. */
  readonly message?: Message;
}

export interface UniqueKey {
  readonly key: string;
  /** Why a second one is refused, such as `a group named x exists in …`. */
  readonly taken: string;
}

/** A declared resource, with what the engine derives from the declaration once. */
export interface Resource<S extends DescMessage = DescMessage> extends ResourceSpec<S> {
  /** Whether it can have grandchildren of its kind, so that children and descendants of a uid differ. */
  readonly nests: boolean;
  /** The sort keys that are stored for each resource. `uid` needs none. */
  readonly sortKeys: Readonly<Record<string, (stored: Stored) => string>>;
  /** The same by the names under which they are stored. */
  readonly storedSortKeys: Readonly<Record<string, (stored: Stored) => string>>;
  /** The values that rows are found by: those of references and facets, and the PARTITION. */
  readonly values: Readonly<Record<string, (message: Message, state?: State) => ReadonlySet<string>>>;
  /** The name under which the listing index stores an order or a facet: `name`, or `name#2` for its second version. */
  storedName(name: string): string;
  /**
   * The orders in which each kind of list is kept, by their stored names. The first one of `facet` also serves to look up
   * a single row.
   */
  readonly listOrders: {
    readonly whole: readonly string[];
    readonly facet: readonly string[];
    readonly partition: readonly string[];
  };
}

/** The facet that `hidden` adds. Its value is the flag that includes the resource in lists, or VISIBLE. */
export const PARTITION = '#';

/** The partition that every list includes. The others are named after the request field that includes them. */
export const VISIBLE = '';

/** A time as a sort key: text of a fixed width. Times before 1970 sort like 1970. */
export const timeKey = (ms: number): string => String(Math.max(0, ms)).padStart(15, '0');

/** A timestamp of a message as a sort key. Absent ones come first. */
export const timestampKey = (timestamp: Timestamp | undefined): string =>
  timestamp ? timeKey(timestampMs(timestamp)) : '';

export function defineResource<S extends DescMessage>(spec: ResourceSpec<S>): Resource<S> {
  const nests = spec.parents.some((kind) => kind === 'group' || kind === ROOT);
  const storedName = (name: string): string => {
    const version = spec.indexVersions?.[name] ?? 1;
    return version > 1 ? `${name}#${version}` : name;
  };
  const sortKeys = sortKeysOf(spec);
  const storedSortKeys = Object.fromEntries(Object.entries(sortKeys).map(([name, keyOf]) => [storedName(name), keyOf]));
  const whole = Object.keys(sortKeys)
    .filter((order) => !(order in (spec.rareOrders ?? {})))
    .map(storedName);
  const orders = ['uid', ...whole];
  const listOrders = { whole, facet: spec.facetOrders?.map(storedName) ?? orders, partition: orders };
  return { ...spec, nests, sortKeys, storedSortKeys, values: valuesOf(spec), storedName, listOrders };
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
    // No filter can ask for an empty value.
    values[field] = (message, state) =>
      new Set(read(message as MessageShape<S>, state).filter((value) => value !== ''));
  }
  if (hidden) {
    const flags = Object.entries(hidden);
    values[PARTITION] = (message) =>
      new Set([flags.find(([, isHidden]) => isHidden(message as MessageShape<S>))?.[0] ?? VISIBLE]);
  }
  return values;
}
