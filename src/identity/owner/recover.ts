import { randomUUID } from 'node:crypto';
import { clone, create } from '@bufbuild/protobuf';
import type { Clock } from '../../base/clock.ts';
import { newUid, ROOT, rootOf, type Uid } from '../../base/uid.ts';
import { GroupSchema, OrgStatus } from '../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitySchema } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { enable, isEnabled } from '../../domains/iam/disabled.ts';
import { FIRST_ORGANIZATION } from '../../domains/iam/groups/first-organization.ts';
import { groups } from '../../domains/iam/groups/groups.ts';
import { recordMember } from '../../domains/iam/groups/members.ts';
import { identities, subjectKey } from '../../domains/iam/identities/identities.ts';
import { isSameRelationship } from '../../domains/iam/identities/relationship.ts';
import { OPERATOR } from '../../domains/iam/roles/builtin-roles.ts';
import { bindingKey, newBinding, roleBindings } from '../../domains/iam/roles/role-bindings.ts';
import { syncBuiltinRoles } from '../../domains/iam/roles/sync-builtin-roles.ts';
import { find, findByKey, findReferring } from '../../resource/read.ts';
import { insert, update } from '../../resource/write.ts';
import { appendEvent } from '../../store/outbox.ts';
import { getSetting, putSetting } from '../../store/settings.ts';
import type { Store, Transaction } from '../../store/store.ts';
import { newOwner, type Owner, readOwner, relationshipOf, saveOwner } from './owner-key.ts';

/** The type of the event that records a recovery. */
export const OWNER_RECOVERED = 'dev.wharfinger.iam.owner.recovered.v1';

/** The setting with the uid of the owner's identity. Servers that were first started by an older version have none. */
export const OWNER_IDENTITY = 'bootstrap.owner';

export interface RecoveryOptions {
  /** Replaces the key even if the data directory has one. */
  readonly newKey: boolean;
  /** The name of the organization to create if the first one was deleted. */
  readonly name: string;
  /** An organization at which the owner becomes an operator too. */
  readonly organization?: string | undefined;
}

/** What a recovery has left: the owner and its organization. The flags say what was missing. */
export interface Recovery {
  readonly identity: string;
  readonly organization: string;
  readonly newKey: boolean;
  readonly newIdentity: boolean;
  readonly newOrganization: boolean;
  readonly newBinding: boolean;
}

/**
 * Gives the operator of a server access again: its key, its identity, its organization and its role, whichever of them is
 * missing. Works beside running servers, and can be repeated. As at the first start, the key is written to disk before
 * the transaction: if that fails, the next recovery uses the key.
 */
export async function recoverOwner(
  store: Store,
  dataDir: string,
  options: RecoveryOptions,
  clock: Clock,
): Promise<Recovery> {
  const first = await getSetting(store.reader, FIRST_ORGANIZATION);
  if (first === undefined) throw new Error('the database is empty: start the server once, which creates the owner');
  await syncBuiltinRoles(store, clock);
  // A damaged file does not prevent a new key.
  const saved = await readOwner(dataDir).catch((error: unknown) => {
    if (options.newKey) return undefined;
    throw error;
  });
  const newKey = options.newKey || saved === undefined;
  const known = saved ?? (await findOwner(store, first));
  const fresh = await newOwner();
  const key = (options.newKey ? undefined : saved?.key) ?? fresh.key;
  // A deleted organization is not created again under its old uid, because uids are never reused.
  const organization = (await find(store.reader, groups, first))?.uid ?? newUid(ROOT);
  const recovered: Owner = { ...fresh, ...known, key, organization };
  await saveOwner(dataDir, recovered);
  const now = clock();
  return store.write(async (tx) => {
    // The lock makes recoveries that run at the same time wait for each other.
    if ((await getSetting(tx.forUpdate, FIRST_ORGANIZATION)) !== first) {
      throw new Error('another recovery has run at the same time: run the command again');
    }
    await putSetting(tx, FIRST_ORGANIZATION, recovered.organization);
    await putSetting(tx, OWNER_IDENTITY, recovered.identity);
    const newOrganization = await ensureOrganization(tx, recovered.organization, options.name, now);
    const newIdentity = await ensureIdentity(tx, recovered, now);
    const bindings = [await ensureOperator(tx, recovered.identity, recovered.organization, now)];
    if (options.organization !== undefined) {
      const other = await requireOrganization(tx, options.organization);
      bindings.push(await ensureOperator(tx, recovered.identity, other, now));
    }
    const { identity } = recovered;
    const recovery: Recovery = {
      ...{ identity, organization: recovered.organization, newKey, newIdentity, newOrganization },
      newBinding: bindings.includes(true),
    };
    for (const scope of new Set([organization, options.organization ?? organization])) {
      await recordRecovery(tx, recovery, scope, now);
    }
    return recovery;
  });
}

/** The identity of the owner as the database has it, for a data directory without its key. */
async function findOwner(store: Store, first: string): Promise<Omit<Owner, 'key' | 'organization'> | undefined> {
  const urn = `urn:wharfinger:${first}`;
  const uid =
    (await getSetting(store.reader, OWNER_IDENTITY)) ??
    (await findReferring(store.reader, identities, 'subject', subjectKey(urn, 'owner'))).find(
      (found) => found === rootOf(found),
    );
  const stored = uid === undefined ? undefined : await find(store.reader, identities, uid);
  if (stored?.message.relationship.case !== 'staticKeys') return undefined;
  const { issuer, subject, audiences } = stored.message.relationship.value;
  return { identity: stored.uid, issuer, subject, audience: audiences[0] ?? issuer };
}

async function requireOrganization(tx: Transaction, uid: string): Promise<Uid> {
  const group = await find(tx.forShare, groups, uid);
  if (!group || group.parent !== ROOT) throw new Error(`there is no organization ${uid}`);
  return group.uid;
}

/** Each of the following returns whether it created something. */
async function ensureOrganization(tx: Transaction, uid: Uid, name: string, now: number): Promise<boolean> {
  if (await find(tx.forShare, groups, uid)) return false;
  const isTaken = (await findByKey(tx, groups, `${ROOT}/${name}`)) !== undefined;
  const message = create(GroupSchema, {
    name: isTaken ? `${name.slice(0, 50)}-${uid.slice(0, 8)}` : name,
    status: OrgStatus.READY,
  });
  await insert(tx, groups, { message, uid, parent: ROOT, state: { founderBinding: newUid(uid) } }, now);
  return true;
}

/** Makes the identity accept the key of the owner file, and nothing else. */
async function ensureIdentity(tx: Transaction, owner: Owner, now: number): Promise<boolean> {
  const before = await find(tx.forUpdate, identities, owner.identity);
  const relationship = relationshipOf(owner);
  if (!before) {
    const message = create(IdentitySchema, { name: 'owner', relationship });
    await insert(tx, identities, { message, uid: owner.identity, parent: ROOT }, now);
    return true;
  }
  if (!isSameRelationship(before.message.relationship, relationship) || !isEnabled(before)) {
    const message = Object.assign(clone(IdentitySchema, before.message), { relationship });
    await update(tx, identities, before, { message, state: enable(before.state) }, now);
  }
  return false;
}

async function ensureOperator(tx: Transaction, identity: string, organization: Uid, now: number): Promise<boolean> {
  recordMember(tx, organization, identity);
  const message = newBinding(identity, OPERATOR.uid);
  if ((await findByKey(tx, roleBindings, bindingKey(message, organization))) !== undefined) return false;
  const founderBinding = (await find(tx, groups, organization))?.state?.founderBinding as Uid | undefined;
  const isFree = founderBinding !== undefined && !(await find(tx, roleBindings, founderBinding));
  // As the binding of the founder, so that it does not prevent the deletion of the organization.
  const uid = isFree ? founderBinding : newUid(organization);
  await insert(tx, roleBindings, { message, uid, parent: organization }, now);
  return true;
}

/** The owners of each organization that the operator got access to can receive the event. */
const recordRecovery = (tx: Transaction, recovery: Recovery, scope: string, now: number): Promise<void> =>
  appendEvent(tx, {
    id: randomUUID(),
    type: OWNER_RECOVERED,
    subject: recovery.identity,
    scope,
    time: now,
    audience: 'customer',
    extensions: { group: scope },
    actor: { subject: recovery.identity },
    body: { json: JSON.stringify(recovery) },
  });
