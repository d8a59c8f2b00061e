/**
 * A row matches if it has one of the values in a sort key, facet or reference. With `excludes`, it matches if it has
 * none of them.
 */
export interface Filter {
  readonly field: string;
  readonly values: readonly string[];
  readonly excludes?: boolean;
}

/** The conditions that rows must meet to be in a list, besides being in the visible range. */
export interface ListConditions {
  readonly filters: readonly Filter[];
  /** The partitions that the list includes; undefined for all. */
  readonly partitions?: readonly string[] | undefined;
  readonly since?: KeyCondition | undefined;
  readonly before?: KeyCondition | undefined;
}

/** The value of a sort key: that a row has, or a bound of it. */
export interface KeyCondition {
  readonly field: string;
  readonly key: string;
}
