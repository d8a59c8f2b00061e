import type { Migration } from './migration.ts';

/** Resources, the listing index, the outbox and the settings of the server. */
export const foundation: Migration = {
  id: 1,
  name: 'foundation',
  summary: 'creates the tables of resources, the listing index, the outbox and settings',
  worksFrom: 1,
  up: ({ text, integer, blob, json, generatedId, tableOptions, indexOrganized }) => [
    // `body` is the encoded message, `keys` has the sort keys, `state` is never sent to clients.
    // Not index-organized in SQLite: large bodies would fill the inner pages of the index.
    `CREATE TABLE resource (
      kind ${text} NOT NULL,
      uid ${text} NOT NULL,
      parent ${text} NOT NULL,
      created ${integer} NOT NULL,
      updated ${integer} NOT NULL,
      keys ${json} NOT NULL,
      body ${blob} NOT NULL,
      state ${text},
      PRIMARY KEY (kind, uid)
    ) ${tableOptions}`,
    'CREATE INDEX resource_by_parent ON resource (kind, parent, uid)',

    // A list of the listing index and its size `n`, such as all repos below a group.
    `CREATE TABLE list (
      id ${generatedId},
      scope ${text} NOT NULL,
      kind ${text} NOT NULL,
      facet ${text} NOT NULL,
      n ${integer} NOT NULL,
      UNIQUE (scope, kind, facet)
    ) ${tableOptions}`,

    // One row per list, sort order and resource: a page in any order is one seek.
    `CREATE TABLE entry (
      list ${integer} NOT NULL,
      sort ${text} NOT NULL,
      key ${text} NOT NULL,
      uid ${text} NOT NULL,
      PRIMARY KEY (list, sort, key, uid)
    ) ${indexOrganized}`,

    // Unique keys besides the uid, such as a name among siblings.
    `CREATE TABLE natural_key (
      kind ${text} NOT NULL,
      key ${text} NOT NULL,
      uid ${text} NOT NULL,
      PRIMARY KEY (kind, key)
    ) ${indexOrganized}`,

    // Values by which resources are found, such as the identity of a role binding.
    `CREATE TABLE reference (
      kind ${text} NOT NULL,
      field ${text} NOT NULL,
      value ${text} NOT NULL,
      uid ${text} NOT NULL,
      PRIMARY KEY (kind, field, value, uid)
    ) ${indexOrganized}`,

    // Events of committed changes. `scope` is the CloudEvents attribute `group`.
    `CREATE TABLE outbox (
      id ${generatedId},
      event_id ${text} NOT NULL UNIQUE,
      type ${text} NOT NULL,
      subject ${text} NOT NULL,
      scope ${text} NOT NULL,
      time ${integer} NOT NULL,
      audience ${text} NOT NULL,
      extensions ${text} NOT NULL,
      actor ${text},
      body_type ${text},
      body ${text}
    ) ${tableOptions}`,

    `CREATE TABLE setting (
      key ${text} NOT NULL PRIMARY KEY,
      value ${text} NOT NULL
    ) ${tableOptions}`,
  ],
};
