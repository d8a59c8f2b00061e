import type { Migration } from './migration.ts';

/** What users see of the logins that refresh tokens belong to, which the API calls sessions. */
export const sessions: Migration = {
  id: 6,
  name: 'sessions',
  summary: 'adds what users see of their logins',
  worksFrom: 6,
  up: ({ text, integer }) => [
    // `uid` is the uid of the identity and the first half of `id`. Access tokens contain it. They must not contain `id`,
    // because a refresh token with this id and a wrong secret ends the login.
    `ALTER TABLE refresh_family ADD COLUMN uid ${text} NOT NULL DEFAULT ''`,
    `ALTER TABLE refresh_family ADD COLUMN created ${integer} NOT NULL DEFAULT 0`,
    `ALTER TABLE refresh_family ADD COLUMN used ${integer} NOT NULL DEFAULT 0`,
    `ALTER TABLE refresh_family ADD COLUMN address ${text} NOT NULL DEFAULT ''`,
    `ALTER TABLE refresh_family ADD COLUMN user_agent ${text} NOT NULL DEFAULT ''`,
    // A login ends 30 days after it began.
    `UPDATE refresh_family SET uid = identity || '/' || substr(id, 1, 16),
      created = expires - 2592000000, used = expires - 2592000000`,
    'CREATE UNIQUE INDEX refresh_family_by_uid ON refresh_family (uid)',
  ],
};
