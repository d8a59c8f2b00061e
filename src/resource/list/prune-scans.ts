import type { Reader, Value } from '../../store/store.ts';
import { firstRowsStatement, queryValues, type ScanQuery } from './list-sql.ts';
import { comparePageRows, type PageRow } from './plan.ts';
import { divideIntoStatements } from './scan.ts';

interface FirstRow extends PageRow {
  /** The number of its scan. */
  readonly scan: number;
}

/**
 * Drops the scans that cannot have a row on a page of `rows` rows. Of a thousand scans at most fifty can have rows on a
 * page of fifty: those whose first rows come first. To find the first rows takes one seek per scan.
 */
export async function pruneScans(
  db: Reader,
  queries: readonly ScanQuery[],
  values: Readonly<Record<string, Value>>,
  rows: number,
): Promise<readonly ScanQuery[]> {
  const [query] = queries;
  // Not if scans overlap, because the first rows of several scans may then be one row. A loop needs no pruning.
  if (
    !query ||
    query.scansOverlap ||
    query.loopFunction ||
    queries.reduce((sum, { scans }) => sum + scans.length, 0) <= rows
  )
    return queries;
  const compare = comparePageRows(query.order);
  const candidates = [];
  for (const each of queries) {
    const { text, bind } = firstRowsStatement(each);
    const firstRows = await db.all<FirstRow>(text, ...bind({ ...values, ...queryValues(each) }));
    for (const row of firstRows) candidates.push({ row, scans: each.scans.slice(row.scan, row.scan + 1) });
  }
  const kept = candidates.sort((a, b) => compare(a.row, b.row)).slice(0, rows);
  return divideIntoStatements(kept.map(({ scans }) => scans)).map((scans) => ({ ...query, scans }));
}
