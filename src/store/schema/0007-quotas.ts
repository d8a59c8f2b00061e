import type { Migration } from './migration.ts';

/** What quotas count: bytes and unfinished uploads of organizations, registrations, logins of an identity. */
export const quotas: Migration = {
  id: 7,
  name: 'quotas',
  summary: 'creates the tables that quotas count in, and counts the storage of organizations',
  worksFrom: 7,
  up: ({ text, integer, tableOptions }) => [
    'CREATE INDEX IF NOT EXISTS refresh_family_by_identity ON refresh_family (identity, expires)',

    // How often something happened in the current period of a key, such as registrations of an organization in an hour.
    `CREATE TABLE period_count (
      key ${text} NOT NULL PRIMARY KEY,
      period ${integer} NOT NULL,
      n ${integer} NOT NULL
    ) ${tableOptions}`,

    // The size of all blobs and manifests of an organization. A blob that several of its repos link counts once.
    `CREATE TABLE organization_storage (
      organization ${text} NOT NULL PRIMARY KEY,
      bytes ${integer} NOT NULL
    ) ${tableOptions}`,
    // Finds whether another repo of an organization links a blob.
    'DROP INDEX blob_link_by_digest',
    'CREATE INDEX blob_link_by_digest ON blob_link (digest, repo)',
    `INSERT INTO organization_storage (organization, bytes)
      SELECT organization, sum(size) FROM (
        SELECT organization, size FROM
          (SELECT DISTINCT substr(repo, 1, 40) AS organization, digest, size FROM blob_link) AS blobs
        UNION ALL
        SELECT substr(repo, 1, 40) AS organization, length(bytes) AS size FROM manifest
      ) AS content GROUP BY organization`,

    // One row per unfinished upload of a blob. `bytes` is how much of the quota it has reserved.
    `CREATE TABLE upload (
      id ${text} NOT NULL PRIMARY KEY,
      organization ${text} NOT NULL,
      bytes ${integer} NOT NULL,
      begun ${integer} NOT NULL
    ) ${tableOptions}`,
    'CREATE INDEX upload_by_organization ON upload (organization, begun)',
  ],
};
