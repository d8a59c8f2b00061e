import type { Migration } from './migration.ts';

/** The signing keys of the issuer, and the logins that refresh tokens belong to. */
export const identity: Migration = {
  id: 2,
  name: 'identity',
  summary: 'creates the tables of signing keys and logins',
  worksFrom: 2,
  up: ({ text, integer, tableOptions }) => [
    // A key signs from `activates` until `retires` and is published until `expires`. Both are null until it has a
    // successor.
    `CREATE TABLE signing_key (
      kid ${text} NOT NULL PRIMARY KEY,
      created ${integer} NOT NULL,
      activates ${integer} NOT NULL,
      retires ${integer},
      expires ${integer},
      private_key ${text} NOT NULL,
      public_jwk ${text} NOT NULL
    ) ${tableOptions}`,

    // One row per login, however often its refresh token was renewed. Only the newest secret is valid.
    `CREATE TABLE refresh_family (
      id ${text} NOT NULL PRIMARY KEY,
      secret_hash ${text} NOT NULL,
      identity ${text} NOT NULL,
      session ${text} NOT NULL,
      expires ${integer} NOT NULL
    ) ${tableOptions}`,
    'CREATE INDEX refresh_family_by_expiry ON refresh_family (expires)',
  ],
};
