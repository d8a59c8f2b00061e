import type { Migration } from '../migrations.ts';

/** What scanners said about images, beside the resource that lists of reports show. */
export const reports: Migration = {
  id: 5,
  name: 'reports',
  up: ({ text, integer, blob, table }) => [
    // Vulnerabilities is the digest of the findings that comparisons need; the findings themselves and the report as it
    // came are compressed. The small columns come first: SQLite reads no further than it must.
    `CREATE TABLE vulnerability_report (
      uid ${text} NOT NULL PRIMARY KEY,
      repo ${text} NOT NULL,
      digest ${text} NOT NULL,
      scanner ${integer} NOT NULL,
      scanned ${integer} NOT NULL,
      vulnerabilities ${text} NOT NULL,
      findings ${blob} NOT NULL,
      raw ${blob} NOT NULL
    ) ${table}`,
    'CREATE INDEX vulnerability_report_by_image ON vulnerability_report (repo, digest, scanned)',
    'CREATE INDEX vulnerability_report_by_digest ON vulnerability_report (digest, scanned)',
  ],
};
