/** A read of one row by its key. All columns of the key are text. */
export interface PointRead {
  readonly columns: readonly string[];
  readonly from: string;
  readonly key: readonly string[];
}

const pointReads = new Map<string, PointRead>();

/** Returns the text of such a read. PostgreSQL batches concurrent reads with the same text into one statement. */
export function pointRead(read: PointRead): string {
  const { columns, from, key } = read;
  const where = key.map((column, at) => `${column} = $${at + 1}`);
  const text = `SELECT ${columns.join(', ')} FROM ${from} WHERE ${where.join(' AND ')}`;
  pointReads.set(text, read);
  return text;
}

export const pointReadOf = (text: string): PointRead | undefined => pointReads.get(text);
