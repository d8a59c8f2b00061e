import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { databases, temporaryStore } from '../../../../test/support/databases.ts';
import { ApiError, Code } from '../../../base/errors.ts';
import { newUid, ROOT } from '../../../base/uid.ts';
import { files, methodTable } from '../../../contract/method-table.ts';
import type { Caller } from '../../../resource/caller.ts';
import type { WriteContext } from '../../../resource/operation.ts';
import { requireNotReserved, reserveDeleted, reserveRenamed } from './former-names.ts';

const DAY = 24 * 60 * 60 * 1000;
const [method = assert.fail()] = methodTable(files);

const tenant = (uid: string): Caller => ({
  ...{ uid, actor: undefined, isRestricted: false, login: undefined },
  can: () => false,
  lacks: (wanted) => wanted,
  reach: () => [],
  current() {
    return this;
  },
});

for (const database of databases) {
  describe(`former names of organizations on ${database.name}`, () => {
    test('are reserved for 30 days, and renaming back and forth uses them up only once', async (t) => {
      const store = await temporaryStore(database);
      t.after(() => store.close());
      const at = (now: number, work: (ctx: WriteContext) => Promise<void>, uid = newUid(ROOT)) =>
        store.write((db) =>
          work({
            ...{ method, caller: tenant(uid), authorization: undefined, now, db },
            ...{ unchanged() {}, setHeader() {} },
          }),
        );
      const refused = (code: Code) => (error: unknown) => error instanceof ApiError && error.code === code;
      const [org, other] = [newUid(ROOT), newUid(ROOT)];

      await at(0, (ctx) => reserveRenamed(ctx, org, 'first', 'second'));
      await assert.rejects(
        at(30 * DAY - 1, (ctx) => requireNotReserved(ctx, other, 'first')),
        refused(Code.ALREADY_EXISTS),
      );
      await at(30 * DAY - 1, (ctx) => requireNotReserved(ctx, org, 'first'));
      await at(30 * DAY, (ctx) => requireNotReserved(ctx, other, 'first'));

      for (let i = 0; i < 5; i++) {
        await at(DAY, (ctx) => reserveRenamed(ctx, org, 'second', 'first'));
        await at(DAY, (ctx) => reserveRenamed(ctx, org, 'first', 'second'));
      }
      // Two names are reserved now.
      for (let i = 0; i < 8; i++) await at(DAY, (ctx) => reserveRenamed(ctx, org, `name ${i}`, `name ${i + 1}`));
      await assert.rejects(
        at(DAY, (ctx) => reserveRenamed(ctx, org, 'name 8', 'name 9')),
        refused(Code.RESOURCE_EXHAUSTED),
      );
      await at(32 * DAY, (ctx) => reserveRenamed(ctx, org, 'name 8', 'name 9'));
    });

    test('of deleted organizations are reserved up to a limit per identity', async (t) => {
      const store = await temporaryStore(database);
      t.after(() => store.close());
      const [deleter, other] = [newUid(ROOT), newUid(ROOT)];
      const as = (uid: string, work: (ctx: WriteContext) => Promise<void>) =>
        store.write((db) =>
          work({
            ...{ method, caller: tenant(uid), authorization: undefined, now: 0, db },
            ...{ unchanged() {}, setHeader() {} },
          }),
        );
      for (let i = 0; i < 101; i++) await as(deleter, (ctx) => reserveDeleted(ctx, newUid(ROOT), `name ${i}`));
      await assert.rejects(as(other, (ctx) => requireNotReserved(ctx, newUid(ROOT), 'name 99')));
      await as(deleter, (ctx) => requireNotReserved(ctx, newUid(ROOT), 'name 99'));
      await as(other, (ctx) => requireNotReserved(ctx, newUid(ROOT), 'name 100'));
    });
  });
}
