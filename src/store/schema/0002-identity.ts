import type { Migration } from '../migrations.ts';

/** What makes this server an issuer: the keys it signs with, and the logins that refresh tokens stand for. */
export const identity: Migration = {
  id: 2,
  name: 'identity',
  up: ({ text, integer, table }) => [
    // A key signs from `activates` until `retires` and is published until `expires`; without either it has no successor.
    `CREATE TABLE signing_key (
      kid ${text} NOT NULL PRIMARY KEY,
      created ${integer} NOT NULL,
      activates ${integer} NOT NULL,
      retires ${integer},
      expires ${integer},
      private_key ${text} NOT NULL,
      public_jwk ${text} NOT NULL
    ) ${table}`,

    // One row for each login, however often its refresh token was renewed: only the newest secret is good.
    `CREATE TABLE refresh_family (
      id ${text} NOT NULL PRIMARY KEY,
      secret_hash ${text} NOT NULL,
      identity ${text} NOT NULL,
      session ${text} NOT NULL,
      expires ${integer} NOT NULL
    ) ${table}`,
    'CREATE INDEX refresh_family_by_expiry ON refresh_family (expires)',
  ],
};
