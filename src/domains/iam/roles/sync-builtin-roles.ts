import { createHash } from 'node:crypto';
import { clone, create, equals } from '@bufbuild/protobuf';
import type { Clock } from '../../../base/clock.ts';
import { ROOT, type Uid } from '../../../base/uid.ts';
import { capabilitiesIn } from '../../../contract/capabilities.ts';
import { type Role, RoleSchema } from '../../../contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { find } from '../../../resource/read.ts';
import { insert, update } from '../../../resource/write.ts';
import { getSetting, putSetting } from '../../../store/settings.ts';
import type { Store, Transaction } from '../../../store/store.ts';
import { builtinRoles } from './builtin-roles.ts';
import { roles } from './roles.ts';

const FINGERPRINT = 'builtin-roles.fingerprint';

/**
 * Stores the built-in roles of this server version in the database, so that lists and role bindings find them like all
 * other roles. Does nothing when the database has them already, and updates those that changed after an upgrade.
 */
export async function syncBuiltinRoles(store: Store, clock: Clock): Promise<void> {
  const expected = builtinRoles.map(({ uid, name, description, capabilities }) => ({
    uid,
    fields: { name, description, capabilities: capabilitiesIn(capabilities) },
  }));
  const fingerprint = createHash('sha256').update(JSON.stringify(expected)).digest('hex');
  if ((await getSetting(store.reader, FINGERPRINT)) === fingerprint) return;
  const now = clock();
  await store.write(async (tx) => {
    // Written first, because it locks the setting: servers that start at the same time then do this one by one.
    await putSetting(tx, FINGERPRINT, fingerprint);
    for (const { uid, fields } of expected) await upsertRole(tx, uid, fields, now);
  });
}

type RoleFields = Pick<Role, 'name' | 'description' | 'capabilities'>;

async function upsertRole(tx: Transaction, uid: Uid, fields: RoleFields, now: number): Promise<void> {
  const before = await find(tx.forUpdate, roles, uid);
  if (!before) {
    await insert(tx, roles, { message: create(RoleSchema, fields), uid, parent: ROOT }, now);
    return;
  }
  const message = Object.assign(clone(RoleSchema, before.message), fields);
  if (equals(RoleSchema, message, before.message)) return;
  await update(tx, roles, before, { message, state: before.state }, now);
}
