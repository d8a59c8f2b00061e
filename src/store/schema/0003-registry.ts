import type { Migration } from '../migrations.ts';

/** What repos hold: manifests with what follows from them, links to blobs, and where tags point and pointed. */
export const registry: Migration = {
  id: 3,
  name: 'registry',
  up: ({ text, integer, blob, generatedId, table, keyOnlyTable }) => [
    // Annotations are kept apart for manifests with a subject only: lists of referrers show them.
    `CREATE TABLE manifest (
      repo ${text} NOT NULL,
      digest ${text} NOT NULL,
      media_type ${text} NOT NULL,
      artifact_type ${text},
      subject ${text},
      annotations ${text},
      content_size ${integer} NOT NULL,
      platforms ${text} NOT NULL,
      pushed ${integer} NOT NULL,
      bytes ${blob} NOT NULL,
      PRIMARY KEY (repo, digest)
    ) ${table}`,
    'CREATE INDEX manifest_by_subject ON manifest (repo, subject, digest) WHERE subject IS NOT NULL',

    // Blobs and manifests that a manifest needs. What nothing needs may go.
    `CREATE TABLE manifest_link (
      repo ${text} NOT NULL,
      manifest ${text} NOT NULL,
      target ${text} NOT NULL,
      PRIMARY KEY (repo, manifest, target)
    ) ${keyOnlyTable}`,
    'CREATE INDEX manifest_link_by_target ON manifest_link (repo, target)',

    // A blob is there for a repo only if the repo links it, whatever other repos store.
    `CREATE TABLE blob_link (
      repo ${text} NOT NULL,
      digest ${text} NOT NULL,
      size ${integer} NOT NULL,
      linked ${integer} NOT NULL,
      PRIMARY KEY (repo, digest)
    ) ${keyOnlyTable}`,
    'CREATE INDEX blob_link_by_digest ON blob_link (digest)',

    // What a pull by tag needs of the tag resource.
    `CREATE TABLE tag_target (
      repo ${text} NOT NULL,
      name ${text} NOT NULL,
      digest ${text} NOT NULL,
      uid ${text} NOT NULL,
      PRIMARY KEY (repo, name)
    ) ${keyOnlyTable}`,

    // One row for each time that a tag began to point somewhere; without a digest, it was deleted.
    `CREATE TABLE tag_history (
      id ${generatedId},
      repo ${text} NOT NULL,
      name ${text} NOT NULL,
      digest ${text},
      changed ${integer} NOT NULL,
      actor ${text} NOT NULL
    ) ${table}`,
    'CREATE INDEX tag_history_by_tag ON tag_history (repo, name, id)',
  ],
};
