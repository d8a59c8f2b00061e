import type { Migration } from './migration.ts';

/** The content of repos: manifests and what is derived from them, links to blobs, tags and their history. */
export const registry: Migration = {
  id: 3,
  name: 'registry',
  summary: 'creates the tables of the registry',
  worksFrom: 3,
  up: ({ text, integer, blob, generatedId, tableOptions, indexOrganized }) => [
    // `annotations` is set only for manifests with a subject: lists of referrers show them.
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
    ) ${tableOptions}`,
    'CREATE INDEX manifest_by_subject ON manifest (repo, subject, digest) WHERE subject IS NOT NULL',

    // The blobs and manifests that a manifest refers to. Content without references can be deleted.
    `CREATE TABLE manifest_link (
      repo ${text} NOT NULL,
      manifest ${text} NOT NULL,
      target ${text} NOT NULL,
      PRIMARY KEY (repo, manifest, target)
    ) ${indexOrganized}`,
    'CREATE INDEX manifest_link_by_target ON manifest_link (repo, target)',

    // A repo has a blob only if it has a link to it, even if the storage has the blob for another repo.
    `CREATE TABLE blob_link (
      repo ${text} NOT NULL,
      digest ${text} NOT NULL,
      size ${integer} NOT NULL,
      linked ${integer} NOT NULL,
      PRIMARY KEY (repo, digest)
    ) ${indexOrganized}`,
    'CREATE INDEX blob_link_by_digest ON blob_link (digest)',

    // The columns of the tag resource that a pull by tag needs.
    `CREATE TABLE tag_target (
      repo ${text} NOT NULL,
      name ${text} NOT NULL,
      digest ${text} NOT NULL,
      uid ${text} NOT NULL,
      PRIMARY KEY (repo, name)
    ) ${indexOrganized}`,

    // One row per change of a tag. `digest` is null when the tag was deleted.
    `CREATE TABLE tag_history (
      id ${generatedId},
      repo ${text} NOT NULL,
      name ${text} NOT NULL,
      digest ${text},
      changed ${integer} NOT NULL,
      actor ${text} NOT NULL
    ) ${tableOptions}`,
    'CREATE INDEX tag_history_by_tag ON tag_history (repo, name, id)',
  ],
};
