import type { Migration } from './migration.ts';

/** The reports of scanners about images. Lists of reports show the resource, which has less. */
export const reports: Migration = {
  id: 5,
  name: 'reports',
  summary: 'creates the table of scanner reports',
  worksFrom: 5,
  up: ({ text, integer, blob, tableOptions }) => [
    // `vulnerabilities` has the part of the findings that comparisons need. `findings` and `raw`, the report as it was
    // received, are compressed. The small columns come first: SQLite reads a row only up to the last column it needs.
    `CREATE TABLE vulnerability_report (
      uid ${text} NOT NULL PRIMARY KEY,
      repo ${text} NOT NULL,
      digest ${text} NOT NULL,
      scanner ${integer} NOT NULL,
      scanned ${integer} NOT NULL,
      vulnerabilities ${text} NOT NULL,
      findings ${blob} NOT NULL,
      raw ${blob} NOT NULL
    ) ${tableOptions}`,
    'CREATE INDEX vulnerability_report_by_image ON vulnerability_report (repo, digest, scanned)',
    'CREATE INDEX vulnerability_report_by_digest ON vulnerability_report (digest, scanned)',
  ],
};
