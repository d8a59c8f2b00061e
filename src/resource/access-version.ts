import { randomUUID } from 'node:crypto';
import type { BulkInsert } from '../store/bulk-insert.ts';
import type { Transaction } from '../store/store.ts';

/** The setting whose value changes with every change of who may do what. */
export const ACCESS_VERSION = 'access.version';

const SETTING: BulkInsert = {
  into: 'setting',
  columns: { key: 'text', value: 'text' },
  conflict: { key: ['key'], replace: 'value' },
};

/** Invalidates all cached grants, on every server of the database, when the transaction commits. */
export const bumpAccessVersion = (tx: Transaction): void => tx.insertUnawaited(SETTING, [ACCESS_VERSION, randomUUID()]);
