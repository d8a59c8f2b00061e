import formerParts from './0010-former-parts.json' with { type: 'json' };
import type { Migration } from './migration.ts';

/**
 * The parts of the listing index of each kind in the release before this migration. Databases of that release have
 * exactly these. The names are explained in src/resource/index/index-parts.ts.
 */
const FORMER_PARTS: Readonly<Record<string, readonly string[]>> = formerParts;

/** What the listing index of each kind consists of, so that a changed declaration is noticed and the index rebuilt. */
export const listingIndex: Migration = {
  id: 10,
  name: 'listing index',
  summary: 'records what the listing index of each kind of resource consists of; takes no time',
  worksFrom: 9,
  up: ({ text, integer, tableOptions }) => [
    // The generation of the listing index that has the resource. It has a meaning only while an index is built.
    `ALTER TABLE resource ADD COLUMN indexed ${integer}`,

    // - `parts`: the parts that have all resources, as a JSON array.
    // - `building`: the parts that do not have all resources yet.
    // - `dropping`: the parts that are no longer declared, and whose rows are to be deleted.
    // - `generation`: counts the changes of the declaration.
    // - `phase`: `complete`, `waiting`, `purging` or `building`. Every change of a resource locks the row for share
    //   while the phase is not `complete`.
    `CREATE TABLE listing_index (
      kind ${text} NOT NULL PRIMARY KEY,
      parts ${text} NOT NULL,
      building ${text} NOT NULL,
      dropping ${text} NOT NULL,
      generation ${integer} NOT NULL,
      phase ${text} NOT NULL
    ) ${tableOptions}`,

    // How far the index of a kind is built. A table of its own, because changes of resources lock `listing_index`.
    // - `cursor`: the last resource or list that was processed.
    // - `pass`: counts the passes over all resources. A pass that finds nothing to do ends the build.
    // - `found`: how many resources the pass had to index or had to skip.
    // - `done`: the resources that were indexed in the generation. `total`: all resources at its beginning.
    `CREATE TABLE listing_index_progress (
      kind ${text} NOT NULL PRIMARY KEY,
      generation ${integer} NOT NULL,
      cursor ${text} NOT NULL,
      pass ${integer} NOT NULL,
      found ${integer} NOT NULL,
      done ${integer} NOT NULL,
      total ${integer} NOT NULL,
      started ${integer} NOT NULL,
      updated ${integer} NOT NULL
    ) ${tableOptions}`,

    // The kinds of which a server with other declarations has changed a resource.
    `CREATE TABLE unindexed_write (
      kind ${text} NOT NULL PRIMARY KEY
    ) ${tableOptions}`,

    ...Object.entries(FORMER_PARTS).map(
      ([kind, parts]) => `INSERT INTO listing_index (kind, parts, building, dropping, generation, phase)
        SELECT '${kind}', '${JSON.stringify(parts)}', '[]', '[]', 0, 'complete'
        WHERE EXISTS (SELECT 1 FROM resource)`,
    ),
  ],
};
