/** A value of a column, on both databases. Timestamps are integer milliseconds. */
export type Value = string | number | Uint8Array | null;
export type Row = Record<string, Value>;
