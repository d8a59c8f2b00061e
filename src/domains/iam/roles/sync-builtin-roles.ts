import { createHash } from 'node:crypto';
import { clone, create, equals } from '@bufbuild/protobuf';
import type { Clock } from '../../../base/clock.ts';
import { ROOT } from '../../../base/uid.ts';
import { listOf } from '../../../contract/capabilities.ts';
import { type Role, RoleSchema } from '../../../contract/gen/chainguard/platform/iam/v2/roles_pb.js';
import { find } from '../../../resource/read.ts';
import { insert, update } from '../../../resource/write.ts';
import { getSetting, putSetting } from '../../../store/settings.ts';
import type { Store, Transaction } from '../../../store/store.ts';
import { builtinRoles } from './builtin-roles.ts';
import { roles } from './roles.ts';

const FINGERPRINT = 'builtin-roles.fingerprint';

/**
 * Stores the built-in roles as this server has them, so that lists and bindings find them like all others. Does nothing
 * when they are there already; after an upgrade it brings what changed.
 */
export async function syncBuiltinRoles(store: Store, clock: Clock): Promise<void> {
  const wanted = builtinRoles.map(({ uid, name, description, capabilities }) => ({
    uid,
    fields: { name, description, capabilities: listOf(capabilities) },
  }));
  const fingerprint = createHash('sha256').update(JSON.stringify(wanted)).digest('hex');
  if ((await getSetting(store.reader, FINGERPRINT)) === fingerprint) return;
  const now = clock();
  await store.write(async (tx) => {
    // First of all, because servers that start together then take turns.
    await putSetting(tx, FINGERPRINT, fingerprint);
    for (const { uid, fields } of wanted) await put(tx, uid, fields, now);
  });
}

type Fields = Pick<Role, 'name' | 'description' | 'capabilities'>;

async function put(tx: Transaction, uid: string, fields: Fields, now: number): Promise<void> {
  const before = await find(tx.forUpdate, roles, uid);
  if (!before) {
    await insert(tx, roles, { message: create(RoleSchema, fields), uid, parent: ROOT }, now);
    return;
  }
  const message = Object.assign(clone(RoleSchema, before.message as Role), fields);
  if (equals(RoleSchema, message, before.message as Role)) return;
  await update(tx, roles, before, { message, state: before.state }, now);
}
