import type { Dialect } from '../dialect.ts';

export interface Migration {
  /** Counts up from 1. The highest id in the database is the version of its schema. */
  readonly id: number;
  readonly name: string;
  /** Returns the statements in order. Once released they never change: a later migration corrects a mistake. */
  up(dialect: Dialect): readonly string[];
}
