/** What a check of the database found to be wrong. */
export interface Difference {
  /** The kind of the resource, or the table. */
  readonly kind: string;
  /** The uid of the resource, or what else identifies the row. */
  readonly uid: string;
  readonly problem: ProblemType;
  /** One line: what is wrong. */
  readonly description: string;
  /** Whether what is right follows from other data, so that a repair is possible. */
  readonly isRepairable: boolean;
  /** Whether this check has repaired it. */
  readonly isRepaired: boolean;
  /** What to do about a difference that cannot be repaired. */
  readonly advice?: string;
}

export type ProblemType =
  /** The stored message cannot be decoded. */
  | 'undecodable'
  /** The kind is not declared. */
  | 'unknown kind'
  /** The parent does not exist. */
  | 'parent'
  /** The sort keys in the row of the resource differ from its message. */
  | 'sort keys'
  /** The listing index lacks an entry of the resource. */
  | 'missing entry'
  /** The listing index has an entry that the resource should not have. */
  | 'extra entry'
  /** The size of a list differs from the number of its members. */
  | 'list size'
  | 'missing key'
  /** Two resources have the same unique key. */
  | 'duplicate key'
  | 'extra key'
  | 'missing reference'
  | 'extra reference'
  | 'tag target'
  | 'storage counter'
  | 'missing blob'
  | 'damaged blob';

export type Report = (difference: Difference) => void;
