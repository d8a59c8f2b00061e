import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { durationMs, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { denied, type FieldViolation, invalid } from '../../../base/errors.ts';
import { newUid, parentOf, rootOf, suffixOf, type Uid } from '../../../base/uid.ts';
import { capabilitySetOf, capabilityUnion, covers, NO_CAPABILITIES } from '../../../contract/capabilities.ts';
import { Capability } from '../../../contract/gen/capabilities/capabilities_pb.js';
import {
  type GroupInvite,
  GroupInviteRoleSchema,
  GroupInviteSchema,
  GroupInvitesService,
} from '../../../contract/gen/chainguard/platform/iam/v2/group_invites_pb.js';
import { defineResource, type Stored } from '../../../resource/definition.ts';
import type { Engine } from '../../../resource/engine.ts';
import {
  type EventFacts,
  type Operations,
  type ReadContext,
  type WriteContext,
  writeOperation,
} from '../../../resource/operation.ts';
import { requireParent } from '../../../resource/parent.ts';
import { find, findByKey, findMessagesByUid } from '../../../resource/read.ts';
import { createResource, standardOperations } from '../../../resource/standard-methods.ts';
import { deleteOne, insert } from '../../../resource/write.ts';
import { type Actor, capabilitiesHeld } from '../access/capabilities-held.ts';
import { recordMember } from '../groups/members.ts';
import { bindingKey, newBinding, roleBindings } from '../roles/role-bindings.ts';
import { capabilitiesOf, requireAssignable, requireRoleRevocable, roles } from '../roles/roles.ts';
import { type EmailProof, requireEmail } from './email-proof.ts';

/** Invites are short-lived, because their codes are secrets that people send by e-mail. */
const MAX_TTL = 30 * 24 * 60 * 60 * 1000;
const EMAIL = /^[^\s@\p{Cc}]{1,64}@[^\s@\p{Cc}]{1,189}$/u;
const CODE = /^([0-9a-f]{16})\.([\w-]{43})$/;

/** Gives a role at a group to a person who registers with the code of the invite. */
export const groupInvites = defineResource({
  kind: 'group invite',
  plural: 'group invites',
  schema: GroupInviteSchema,
  parents: ['group'],
  check: inviteProblems,
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

  /** As if the invite were deleted and created again by the caller, with the same code. */
  async beforeUpdate(ctx, { message: before, parent, state }, invite, touched) {
    if (invite.email !== before.email) throw invalid('email', CREATE_ANOTHER);
    if (invite.singleUse !== before.singleUse) throw invalid('single_use', CREATE_ANOTHER);
    await requireRoleRevocable(ctx, before.roleUid, parent);
    await requireAssignable(ctx, 'role_uid', invite.roleUid, parent);
    if (touched.has('ttl')) invite.expirationTime = timestampFromMs(ctx.now + ttlOf(invite));
    delete invite.ttl;
    return { ...state, creator: actorOf(ctx) };
  },

  beforeDelete: (ctx, { message, parent }) => requireRoleRevocable(ctx, message.roleUid, parent),
  present: hydrateInvites,
});

const CREATE_ANOTHER = 'cannot be changed after creation; create another invite';

/** The caller, as it is stored to check its access when the invite is used. */
function actorOf({ caller: { uid, login } }: Pick<WriteContext, 'caller'>): Actor {
  const provider = login?.provider;
  return { uid, ...(provider && { provider }) };
}

const ttlOf = ({ ttl }: GroupInvite): number => (ttl ? durationMs(ttl) : 0);

function inviteProblems(invite: GroupInvite): FieldViolation[] {
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

async function hydrateInvites({ db }: ReadContext, invites: GroupInvite[]): Promise<void> {
  const roleOf = await findMessagesByUid(
    db,
    roles,
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
  ...createGroupInvite,
});

/** Creates an invite and adds its code. Only this response has the code: the database has a hash of its secret. */
export async function createInvite(ctx: WriteContext, group: string, invite: GroupInvite): Promise<GroupInvite> {
  const secret = randomBytes(32).toString('base64url');
  const state = { secretHash: hashOf(secret).toString('hex'), creator: actorOf(ctx) };
  const created = await createResource(ctx, groupInvites, invite, group, state);
  return Object.assign(created, { code: `${created.keyId}.${secret}` });
}

const createGroupInvite = writeOperation(GroupInvitesService.method.createGroupInvite, {
  run: (ctx, { parent, groupInvite = create(GroupInviteSchema) }) => createInvite(ctx, parent, groupInvite),
  event: (_ctx, _request, invite) => inviteEvent(invite),
});

/** The event has the uid and the expiry of the invite, without its code and e-mail address. */
export function inviteEvent({ uid, expirationTime }: GroupInvite): EventFacts {
  const message = create(GroupInviteSchema, { uid, ...(expirationTime && { expirationTime }) });
  return { subject: uid, extensions: { group: parentOf(uid) }, body: { schema: GroupInviteSchema, message } };
}

/** A hash without salt or stretching, because 256 random bits cannot be guessed. */
const hashOf = (secret: string): Buffer => createHash('sha256').update(secret).digest();

/**
 * Gives `identity` the role of an invite, if the creator of the invite could create it now. A single-use invite is deleted
 * here under a lock, so that only one of two concurrent calls finds it.
 */
export async function redeemInvite(
  ctx: WriteContext,
  code: string,
  identity: string,
  email: EmailProof | undefined,
): Promise<{ readonly group: string; readonly roleUid: string }> {
  const stored = await findInvite(ctx, code);
  const { parent: group, message: invite } = stored;
  requireNotExpired(invite, ctx.now);
  if (invite.email !== '') await requireEmail(ctx.db, group, invite.email, email);
  await requireCreatorAccess(ctx, stored);
  const { roleUid } = invite;
  await ensureRoleBinding(ctx, group, identity, roleUid);
  if (invite.singleUse) await deleteOne(ctx.db, groupInvites, stored);
  return { group, roleUid };
}

/** Refuses unknown key ids, wrong secrets and used invites with one message, which does not tell them apart. */
async function findInvite({ db }: WriteContext, code: string): Promise<Stored<GroupInvite>> {
  const [, keyId, secret] = CODE.exec(code) ?? [];
  const uid = keyId && (await findByKey(db, groupInvites, keyId));
  const stored = uid ? await find(db.forUpdate, groupInvites, uid) : undefined;
  const secretHash = stored?.state?.secretHash;
  if (stored && secret && typeof secretHash === 'string') {
    if (timingSafeEqual(hashOf(secret), Buffer.from(secretHash, 'hex'))) return stored;
  }
  throw denied('there is no such invite: the code is wrong, or the invite was deleted or used; ask for a new one');
}

/** Says what is wrong, because the caller has the code. */
function requireNotExpired(invite: GroupInvite, now: number): void {
  if (!invite.expirationTime || timestampMs(invite.expirationTime) <= now) {
    throw denied('the invite has expired; ask for a new one');
  }
}

const CREATE_INVITE = capabilitySetOf([
  Capability.CAP_IAM_GROUP_INVITES_CREATE,
  Capability.CAP_IAM_ROLE_BINDINGS_CREATE,
]);

/**
 * Refuses an invite whose creator has lost the access that it needed to create it. Invites that were created before the
 * creator was stored have none; they expire within 30 days. The locks make a concurrent revocation wait for this one.
 */
async function requireCreatorAccess({ db }: WriteContext, invite: Stored<GroupInvite>): Promise<void> {
  const creator = invite.state?.creator as Actor | undefined;
  if (creator === undefined) return;
  const group = parentOf(invite.uid) as Uid;
  const needed = capabilityUnion(
    CREATE_INVITE,
    (await capabilitiesOf(db.forShare, invite.message.roleUid)) ?? NO_CAPABILITIES,
  );
  if (covers(await capabilitiesHeld(db.forShare, creator, group), needed)) return;
  throw denied(
    'the invite has ended, because its creator no longer has the access to give it; ask an owner for a new one',
  );
}

/** Creates a role binding for a person who joins, unless it exists. An invite or a provider grants the role. */
export async function ensureRoleBinding(
  { db, now }: WriteContext,
  group: string,
  identity: string,
  roleUid: string,
): Promise<void> {
  const message = newBinding(identity, roleUid);
  const parent = await requireParent(db.forShare, roleBindings, group);
  recordMember(db, rootOf(parent), identity);
  if (await findByKey(db, roleBindings, bindingKey(message, group))) return;
  await insert(db, roleBindings, { message, uid: newUid(parent), parent }, now);
}
