import assert from 'node:assert/strict';
import { fromBinary } from '@bufbuild/protobuf';
import type { ParentUid, Uid } from '../../src/base/uid.ts';
import { resources } from '../../src/domains/domains.ts';
import type { Resource, Stored } from '../../src/resource/definition.ts';
import { membershipsOf } from '../../src/resource/list-membership.ts';
import type { Reader, Row } from '../../src/store/store.ts';

interface ResourceRow extends Row {
  kind: string;
  uid: Uid;
  parent: ParentUid;
  created: number;
  updated: number;
  body: Uint8Array;
  state: string | null;
}

/**
 * Recomputes the listing index, natural keys and references from the resources, and the storage of organizations from
 * the content of their repos, and compares them with the tables.
 */
export async function assertConsistent(db: Reader, all: readonly Resource[] = resources): Promise<void> {
  const kinds = new Map<string, Resource>(all.map((resource) => [resource.kind, resource]));
  const entries: string[] = [];
  const counts = new Map<string, number>();
  const keys: string[] = [];
  const references: string[] = [];
  for (const row of await db.all<ResourceRow>(
    'SELECT kind, uid, parent, created, updated, body, state FROM resource',
  )) {
    const resource = kinds.get(row.kind);
    assert.ok(resource, `unknown kind ${row.kind}`);
    const message = fromBinary(resource.schema, row.body);
    const stored: Stored = { ...row, message, state: row.state === null ? undefined : JSON.parse(row.state) };
    for (const { scope, facet, keys: sorts } of membershipsOf(resource)(stored)) {
      const list = `${scope}|${row.kind}|${facet}`;
      counts.set(list, (counts.get(list) ?? 0) + 1);
      for (const [sort, key] of Object.entries(sorts)) entries.push(`${list}|${sort}|${key}|${row.uid}`);
    }
    for (const { key } of resource.unique?.(message as never, row.parent) ?? [])
      keys.push(`${row.kind}|${key}|${row.uid}`);
    for (const field of Object.keys(resource.references ?? {})) {
      const values = resource.values[field]?.(message, stored.state) ?? [];
      for (const value of values) references.push(`${row.kind}|${field}|${value}|${row.uid}`);
    }
  }
  const textColumn = async (sql: string): Promise<string[]> =>
    (await db.all<{ text: string }>(sql)).map(({ text }) => text).sort();
  assert.deepEqual(
    await textColumn(`SELECT l.scope || '|' || l.kind || '|' || l.facet || '|' || e.sort || '|' || e.key || '|' || e.uid AS text
      FROM entry e JOIN list l ON l.id = e.list`),
    entries.sort(),
  );
  assert.deepEqual(
    await textColumn(`SELECT scope || '|' || kind || '|' || facet || '|' || n AS text FROM list WHERE n <> 0`),
    [...counts].map(([list, n]) => `${list}|${n}`).sort(),
  );
  assert.deepEqual(await textColumn(`SELECT kind || '|' || key || '|' || uid AS text FROM natural_key`), keys.sort());
  assert.deepEqual(
    await textColumn(`SELECT kind || '|' || field || '|' || value || '|' || uid AS text FROM reference`),
    references.sort(),
  );
  assert.deepEqual(
    await textColumn(`SELECT organization || '|' || bytes AS text FROM organization_storage WHERE bytes <> 0`),
    await textColumn(`SELECT organization || '|' || sum(size) AS text FROM (
      SELECT organization, size FROM
        (SELECT DISTINCT substr(repo, 1, 40) AS organization, digest, size FROM blob_link) AS blobs
      UNION ALL SELECT substr(repo, 1, 40) AS organization, length(bytes) AS size FROM manifest
    ) AS content GROUP BY organization`),
  );
}
