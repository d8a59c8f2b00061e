import type { Migration } from './migration.ts';

/** The former names of organizations, and the people who have joined them. */
export const organizations: Migration = {
  id: 9,
  name: 'organizations',
  summary: 'creates the tables of former organization names and of members',
  worksFrom: 9,
  up: ({ text, integer, tableOptions, indexOrganized }) => [
    // `deleted_by` is the identity that deleted the organization; null after a renaming.
    `CREATE TABLE former_organization_name (
      name ${text} NOT NULL PRIMARY KEY,
      organization ${text} NOT NULL,
      deleted_by ${text},
      reserved_until ${integer} NOT NULL
    ) ${tableOptions}`,
    'CREATE INDEX former_organization_name_by_organization ON former_organization_name (organization)',

    // People whose name and e-mail address the members of an organization may see.
    `CREATE TABLE organization_member (
      organization ${text} NOT NULL,
      identity ${text} NOT NULL,
      PRIMARY KEY (organization, identity)
    ) ${indexOrganized}`,
    'CREATE INDEX organization_member_by_identity ON organization_member (identity)',
    // How people got their role bindings was not recorded before, so all who have one stay visible. The uid of a
    // person and that of an organization have 40 characters.
    `INSERT INTO organization_member (organization, identity)
      SELECT DISTINCT substr(uid, 1, 40), value FROM reference
      WHERE kind = 'role binding' AND field = 'identity' AND length(value) = 40`,
  ],
};
