import type { Reader, Value } from '../../store/store.ts';
import { comparePageRows, type PageRow } from './plan.ts';
import { inRounds } from './source.ts';
import { headsStatement, type Shape, sourceValues } from './sql.ts';

interface Head extends PageRow {
  readonly source: number;
}

/**
 * What is left to read for a page of `wanted` rows: of a thousand sources no more than fifty can be on a page of fifty, and
 * these are the ones whose first rows come first. To find them takes a seek for each.
 */
export async function limitToHeads(
  db: Reader,
  shapes: readonly Shape[],
  common: Readonly<Record<string, Value>>,
  wanted: number,
): Promise<readonly Shape[]> {
  const [any] = shapes;
  // Where a row may be the first of several sources, there may be fewer rows than sources. A loop finds them by itself.
  if (!any || any.overlapping || any.loopOver || shapes.reduce((sum, { sources }) => sum + sources.length, 0) <= wanted)
    return shapes;
  const compare = comparePageRows(any.order);
  const heads = [];
  for (const shape of shapes) {
    const { text, bind } = headsStatement(shape);
    const rows = await db.all<Head>(text, ...bind({ ...common, ...sourceValues(shape) }));
    for (const head of rows) heads.push({ head, sources: shape.sources.slice(head.source, head.source + 1) });
  }
  const first = heads.sort((a, b) => compare(a.head, b.head)).slice(0, wanted);
  return inRounds(first.map(({ sources }) => sources)).map((sources) => ({ ...any, sources }));
}
