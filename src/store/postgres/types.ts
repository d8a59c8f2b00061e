import pg from 'pg';
import type { Value } from '../value.ts';

const { builtins } = pg.types;

/** Refuses an integer that a number would round. SQLite refuses it too. */
function safeInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`${text} is too large for a number`);
  return value;
}

/** Replace parsers of the driver, which return strings, booleans and objects. The store returns the types of SQLite. */
const parsers: ReadonlyMap<number, (text: string) => Value> = new Map<number, (text: string) => Value>([
  [builtins.INT8, safeInteger],
  [builtins.NUMERIC, Number], // the type of sum(bigint)
  [builtins.BOOL, (text) => (text === 't' ? 1 : 0)],
  [builtins.JSON, (text) => text],
  [builtins.JSONB, (text) => text],
]);

export const valueTypes: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number) =>
    parsers.get(oid) ?? pg.types.getTypeParser(oid, 'text')) as typeof pg.types.getTypeParser,
};
