import type { Dialect } from '../dialect.ts';

/** A change of the schema. CONTRIBUTING.md explains how to write one. */
export interface Migration {
  /** Counts up from 1. */
  readonly id: number;
  readonly name: string;
  /** What it does, for the log: an operator reads it while a migration takes long. */
  readonly summary: string;
  /**
   * The lowest migration that a server must know to work with the database after this one: the number of the newest
   * migration of the oldest release that can go on serving, and can be started again. It is the own id if no earlier
   * release can.
   */
  readonly worksFrom: number;
  /** Returns the statements in order. Once released they never change: a later migration corrects a mistake. */
  up(dialect: Dialect): readonly string[];
}
