import assert from 'node:assert/strict';
import { createLogger, type Log } from '../../src/base/log.ts';
import type { Reader, Row } from '../../src/store/store.ts';

interface OutboxRow extends Row {
  type: string;
  scope: string;
  extensions: string;
  body_type: string | null;
  body: string | null;
}

export interface RecordedEvent {
  readonly type: string;
  readonly scope: string;
  readonly source: string | undefined;
  readonly extensions: Record<string, string>;
  readonly bodyType: string | null;
  readonly body: Record<string, unknown> | null;
}

/** Returns the outbox events of a subject, oldest first. */
export async function eventsAbout(db: Reader, subject: string): Promise<RecordedEvent[]> {
  const rows = await db.all<OutboxRow>(
    'SELECT type, scope, extensions, body_type, body FROM outbox WHERE subject = $1 ORDER BY id',
    subject,
  );
  return rows.map(({ type, scope, extensions: stored, body_type, body }) => {
    const { source, ...extensions } = JSON.parse(stored) as Record<string, string>;
    return { type, scope, source, extensions, bodyType: body_type, body: body === null ? null : JSON.parse(body) };
  });
}

const TABLES = ['resource', 'list', 'entry', 'natural_key', 'reference', 'outbox', 'setting'];

/** Fails if any column of the database contains one of `secrets`, also as a substring. */
export async function assertNotStored(db: Reader, secrets: readonly string[]): Promise<void> {
  for (const table of TABLES) {
    const rows = await db.all(`SELECT * FROM ${table}`);
    assert.ok(rows.length > 0, `${table} is empty, so the check would be meaningless`);
    const text = rows.map((row) => Object.values(row).map(asText).join(' ')).join('\n');
    for (const secret of secrets) assert.ok(!text.includes(secret), `a secret is in the table ${table}`);
  }
}

const asText = (value: unknown): string =>
  value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : String(value);

/** A log of all levels that collects its lines. */
export function capturedLog(): { readonly log: Log; readonly lines: string[] } {
  const lines: string[] = [];
  return { log: createLogger({ level: 'debug', destination: { write: (line) => lines.push(line) } }), lines };
}
