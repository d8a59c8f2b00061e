import type { Migration } from '../migrations.ts';

/** Resources, the listing index over them, the outbox and the server's own settings. */
export const foundation: Migration = {
  id: 1,
  name: 'foundation',
  up: ({ text, integer, blob, json, generatedId, table, keyOnlyTable }) => [
    // The body is the encoded message; keys holds what it is sorted by; state is what never goes on the wire.
    // Not a key-only table in SQLite: large bodies would fill the inner pages of the key's index.
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
    ) ${table}`,
    'CREATE INDEX resource_by_parent ON resource (kind, parent, uid)',

    // A named, ordered collection and how many members it has, such as all repos below a group.
    `CREATE TABLE list (
      id ${generatedId},
      scope ${text} NOT NULL,
      kind ${text} NOT NULL,
      facet ${text} NOT NULL,
      n ${integer} NOT NULL,
      UNIQUE (scope, kind, facet)
    ) ${table}`,

    // One row per collection, sort order and member: a page in any order is one seek.
    `CREATE TABLE entry (
      list ${integer} NOT NULL,
      sort ${text} NOT NULL,
      key ${text} NOT NULL,
      uid ${text} NOT NULL,
      PRIMARY KEY (list, sort, key, uid)
    ) ${keyOnlyTable}`,

    // What must be unique beyond the uid, such as a name among siblings.
    `CREATE TABLE natural_key (
      kind ${text} NOT NULL,
      key ${text} NOT NULL,
      uid ${text} NOT NULL,
      PRIMARY KEY (kind, key)
    ) ${keyOnlyTable}`,

    // Who points at what, such as the bindings of an identity.
    `CREATE TABLE reference (
      kind ${text} NOT NULL,
      field ${text} NOT NULL,
      value ${text} NOT NULL,
      uid ${text} NOT NULL,
      PRIMARY KEY (kind, field, value, uid)
    ) ${keyOnlyTable}`,

    // Events of committed changes, waiting for delivery. Scope is the CloudEvents attribute `group`.
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
    ) ${table}`,

    `CREATE TABLE setting (
      key ${text} NOT NULL PRIMARY KEY,
      value ${text} NOT NULL
    ) ${table}`,
  ],
};
