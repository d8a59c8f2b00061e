import type { ColumnType } from '../bulk-insert.ts';

/** A table as it is in both databases. */
export interface Table {
  readonly name: string;
  readonly columns: readonly Column[];
  /** The columns of the primary key, in its order. */
  readonly key: readonly Column[];
}

export interface Column {
  readonly name: string;
  readonly type: ColumnType;
}

/** Tables that describe the database itself. Their rows are not copied. */
export const OWN_TABLES: ReadonlySet<string> = new Set([
  ...['migration', 'compatible_migration'],
  ...['copy_source', 'copy_change', 'copy_progress'],
]);

export const namesOf = (columns: readonly Column[]): string => columns.map(({ name }) => name).join(', ');

const sorted = (columns: readonly Column[]): Column[] => [...columns].sort((a, b) => (a.name < b.name ? -1 : 1));

/** Refuses to copy between different schemas, which happens when another version has changed one of them. */
export function requireSameTables(source: readonly Table[], target: readonly Table[]): void {
  const describe = (tables: readonly Table[]): Map<string, string> =>
    new Map(tables.map(({ name, columns, key }) => [name, `${namesOf(sorted(columns))} by ${namesOf(key)}`]));
  const [inSource, inTarget] = [describe(source), describe(target)];
  for (const name of new Set([...inSource.keys(), ...inTarget.keys()])) {
    if (inSource.get(name) === inTarget.get(name)) continue;
    throw new Error(
      `the table ${name} is not the same in both databases: use the version of Wharfinger that the server has, ` +
        'and an empty PostgreSQL database',
    );
  }
}
