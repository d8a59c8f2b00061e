/** One run of rows inside the extent of a list; a page merges the heads of a few of them. */
export type Source =
  /** A subtree in uid order, straight from the primary key. */
  | { readonly from: 'range'; readonly low: string; readonly high: string; readonly withLow: boolean }
  /** The children of a uid in uid order. */
  | { readonly from: 'parent'; readonly parent: string }
  /** A list of the listing index, in one of its orders. */
  | {
      readonly from: 'list';
      readonly list: number;
      readonly without: string | undefined;
      /** Each group of lists holds the row in at least one of them. */
      readonly within: readonly (readonly number[])[];
    }
  /** The few of a subtree that share the value of a reference, in uid order. */
  | {
      readonly from: 'reference';
      readonly field: string;
      readonly value: string;
      readonly low: string;
      readonly high: string;
      readonly withLow: boolean;
      /** When only what lies directly under it counts. */
      readonly parent: string | undefined;
      readonly within: readonly (readonly number[])[];
    };

/** Names a parameter and answers its `$n`; the same name is the same parameter. */
export type Slot = (name: string) => string;

/** Where the rows of a source come from, and what makes them its rows. */
export function tableOf(
  source: Source,
  i: number,
  slot: Slot,
  sort: string,
): { table: string; uid: string; where: string[] } {
  const at = (name: string) => slot(`${name}${i}`);
  switch (source.from) {
    case 'parent':
      return { table: 'resource r', uid: 'r.uid', where: [`r.kind = ${slot('kind')}`, `r.parent = ${at('parent')}`] };
    case 'range':
      return {
        table: 'resource r',
        uid: 'r.uid',
        where: [`r.kind = ${slot('kind')}`, ...between('r.uid', source, at)],
      };
    case 'reference':
      return {
        table: 'reference e',
        uid: 'e.uid',
        where: [
          ...[`e.kind = ${slot('kind')}`, `e.field = ${at('field')}`, `e.value = ${at('value')}`],
          ...between('e.uid', source, at),
          ...(source.parent === undefined ? [] : [`r.parent = ${at('parent')}`]),
          ...membersOf(source.within, i, slot),
        ],
      };
    case 'list':
      return {
        table: 'entry e',
        uid: 'e.uid',
        where: [
          ...[`e.list = ${at('list')}`, `e.sort = ${slot('sort')}`],
          // Said aloud, so that the index is seen to have the rest in order.
          ...(sort === 'uid' ? ["e.key = ''"] : []),
          ...(source.without === undefined ? [] : [`e.uid <> ${at('without')}`]),
          ...membersOf(source.within, i, slot),
        ],
      };
  }
}

const between = (uid: string, { withLow }: { readonly withLow: boolean }, at: (name: string) => string): string[] => [
  `${uid} ${withLow ? '>=' : '>'} ${at('low')}`,
  `${uid} < ${at('high')}`,
];

/** Keeps PostgreSQL from making a join of what shall be a key look-up per row: without statistics it joins badly. */
export const ONE_BY_ONE = 'LIMIT 1 OFFSET 0';

const membersOf = (within: readonly (readonly number[])[], i: number, slot: Slot): string[] =>
  within.map((group, g) => {
    const lists = group.map((_, m) => slot(`within${i}_${g}_${m}`)).join(', ');
    return `EXISTS (SELECT 1 FROM entry x WHERE x.list IN (${lists}) AND x.sort = 'uid' AND x.key = '' AND x.uid = e.uid
      ${ONE_BY_ONE})`;
  });
