import type { Command } from 'commander';
import { addExamples } from '../help.ts';
import { addDbCheck } from './db-check.ts';
import { addDbCopy } from './db-copy.ts';
import { addDbStatus } from './db-status.ts';

/** Adds the commands for the database of a server. They open it directly, whether a server is running or not. */
export function addDb(program: Command): void {
  const db = program.command('db').description('the database of a server');
  addExamples(db, 'wharf db status', 'wharf db check', 'wharf db copy --to postgres://wharf@db.example.com/wharf');
  addDbStatus(db);
  addDbCheck(db);
  addDbCopy(db);
}
