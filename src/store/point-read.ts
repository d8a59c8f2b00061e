/** A read of one row by its key, all of whose columns are text. */
export interface PointRead {
  readonly columns: readonly string[];
  readonly from: string;
  readonly key: readonly string[];
}

const known = new Map<string, PointRead>();

/** The text of such a read. A database may answer many of them that are asked at the same time by one statement. */
export function pointRead(read: PointRead): string {
  const { columns, from, key } = read;
  const where = key.map((column, at) => `${column} = $${at + 1}`);
  const text = `SELECT ${columns.join(', ')} FROM ${from} WHERE ${where.join(' AND ')}`;
  known.set(text, read);
  return text;
}

export const pointReadOf = (text: string): PointRead | undefined => known.get(text);
