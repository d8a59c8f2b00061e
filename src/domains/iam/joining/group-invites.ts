import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { durationMs, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { denied, type FieldViolation } from '../../../base/errors.ts';
import { newUid, parentOf, suffixOf } from '../../../base/uid.ts';
import {
  type CreateGroupInviteRequest,
  type GroupInvite,
  GroupInviteRoleSchema,
  GroupInviteSchema,
  GroupInvitesService,
} from '../../../contract/gen/chainguard/platform/iam/v2/group_invites_pb.js';
import { defineResource, type Stored } from '../../../resource/definition.ts';
import type { Engine } from '../../../resource/engine.ts';
import type { Operation, Operations, ReadContext, WriteContext } from '../../../resource/operation.ts';
import { requireParent } from '../../../resource/parent.ts';
import { find, findByKey } from '../../../resource/read.ts';
import { createResource, standardOperations } from '../../../resource/standard-methods.ts';
import { deleteOne, insert } from '../../../resource/write.ts';
import { bindingKey, newBinding, roleBindings } from '../roles/role-bindings.ts';
import { findRoles, requireAssignable } from '../roles/roles.ts';

/** An invite is a password that travels by mail: it should not lie around for longer. */
const MAX_TTL = 30 * 24 * 60 * 60 * 1000;
const EMAIL = /^[^\s@\p{Cc}]{1,64}@[^\s@\p{Cc}]{1,189}$/u;
const CODE = /^([0-9a-f]{16})\.([\w-]{43})$/;

/** Lets whoever presents its code into a group, with a role. */
export const groupInvites = defineResource({
  kind: 'group invite',
  plural: 'group invites',
  schema: GroupInviteSchema,
  parents: ['group'],
  check: problemsOf,
  unique: ({ keyId }) => [{ key: keyId, taken: 'this key id is in use' }],
  references: { role: ({ roleUid }) => [roleUid] },
  orders: { key_id: ({ keyId }) => keyId },
  defaultOrder: 'create_time desc',

  async beforeCreate(ctx, invite, { uid, parent }) {
    await requireAssignable(ctx, 'role_uid', invite.roleUid, parent);
    invite.keyId = suffixOf(uid);
    invite.expirationTime = timestampFromMs(ctx.now + ttlOf(invite));
    delete invite.ttl;
    return undefined;
  },

  present: hydrate,
});

const ttlOf = ({ ttl }: GroupInvite): number => (ttl ? durationMs(ttl) : 0);

function problemsOf(invite: GroupInvite): FieldViolation[] {
  const found: FieldViolation[] = [];
  const ttl = ttlOf(invite);
  if (invite.ttl && !(ttl > 0 && ttl <= MAX_TTL)) {
    found.push({ field: 'ttl', description: 'must be more than 0 and at most 30 days (2592000s)' });
  }
  if (invite.email !== '' && !EMAIL.test(invite.email)) {
    found.push({ field: 'email', description: 'must be an e-mail address' });
  }
  return found;
}

async function hydrate({ db }: ReadContext, invites: GroupInvite[]): Promise<void> {
  const roleOf = await findRoles(
    db,
    invites.map(({ roleUid }) => roleUid),
  );
  for (const invite of invites) {
    const role = roleOf.get(invite.roleUid);
    if (!role) continue;
    const { uid, name, description, capabilities } = role;
    invite.role = create(GroupInviteRoleSchema, { uid, name, description, capabilities });
  }
}

export const groupInviteOperations = (engine: Engine): Operations => ({
  ...standardOperations(engine, groupInvites, GroupInvitesService),
  [`${GroupInvitesService.typeName}/${GroupInvitesService.method.createGroupInvite.name}`]: createInvite,
});

/** The code is in this one answer and nowhere else; what is stored is a hash of it. */
export async function inviteTo(ctx: WriteContext, group: string, asked: GroupInvite): Promise<GroupInvite> {
  const secret = randomBytes(32).toString('base64url');
  const known = { secretHash: hashOf(secret).toString('hex') };
  const invite = (await createResource(ctx, groupInvites, asked, group, known)) as GroupInvite;
  return Object.assign(invite, { code: `${invite.keyId}.${secret}` });
}

const createInvite: Operation = {
  mode: 'write',
  run(ctx, request) {
    const { parent, groupInvite = create(GroupInviteSchema) } = request as CreateGroupInviteRequest;
    return inviteTo(ctx, parent, groupInvite);
  },
  /** Subscribers learn that there is an invite and until when, not for whom. */
  event(_ctx, _request, response) {
    const { uid, expirationTime } = response as GroupInvite;
    const message = create(GroupInviteSchema, { uid, ...(expirationTime && { expirationTime }) });
    return { subject: uid, extensions: { group: parentOf(uid) }, body: { schema: GroupInviteSchema, message } };
  },
};

/** A plain hash is enough: there is no guessing 256 random bits. */
const hashOf = (secret: string): Buffer => createHash('sha256').update(secret).digest();

export interface TokenEmail {
  readonly address: string;
  readonly verified: boolean;
}

/**
 * Gives `identity` what an invite promises. It was granted when the invite was made: whether its maker still could is
 * not asked again, deleting the invite withdraws it. A single use is a deletion, so of two at once only one finds it.
 */
export async function redeemInvite(
  ctx: WriteContext,
  code: string,
  identity: string,
  email: TokenEmail | undefined,
): Promise<{ readonly group: string; readonly roleUid: string }> {
  const stored = await findInvite(ctx, code);
  const invite = stored.message as GroupInvite;
  refuseUnfit(invite, email, ctx.now);
  const { parent: group } = stored;
  const { roleUid } = invite;
  await bind(ctx, group, identity, roleUid);
  if (invite.singleUse) await deleteOne(ctx.db, groupInvites, stored);
  return { group, roleUid };
}

/** One answer for a code that never was, one with a wrong secret and one that is used up: none tells which it is. */
async function findInvite({ db }: WriteContext, code: string): Promise<Stored> {
  const [, keyId, secret] = CODE.exec(code) ?? [];
  const uid = keyId && (await findByKey(db, groupInvites, keyId));
  const stored = uid ? await find(db.forUpdate, groupInvites, uid) : undefined;
  const expected = stored?.state?.secretHash;
  if (stored && secret && typeof expected === 'string') {
    if (timingSafeEqual(hashOf(secret), Buffer.from(expected, 'hex'))) return stored;
  }
  throw denied('there is no such invite: its code is wrong, or it was withdrawn or used');
}

/** Whoever gets here holds the right code, and may know what else is wrong; but not whom the invite is for. */
function refuseUnfit(invite: GroupInvite, email: TokenEmail | undefined, now: number): void {
  if (!invite.expirationTime || timestampMs(invite.expirationTime) <= now) {
    throw denied('the invite has expired; ask for a new one');
  }
  if (invite.email === '') return;
  if (!email?.verified) throw denied('the invite is for one e-mail address, and the token has none that is verified');
  if (email.address.toLowerCase() !== invite.email.toLowerCase()) {
    throw denied('the invite is for another e-mail address than that of the token');
  }
}

/** Not by way of the method, which would ask what the caller may hand out: here somebody else did. */
export async function bind({ db, now }: WriteContext, group: string, identity: string, roleUid: string): Promise<void> {
  const message = newBinding(identity, roleUid);
  await requireParent(db.forShare, roleBindings, group);
  if (await findByKey(db, roleBindings, bindingKey(message, group))) return;
  await insert(db, roleBindings, { message, uid: newUid(group), parent: group }, now);
}
