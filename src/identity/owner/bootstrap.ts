import { create } from '@bufbuild/protobuf';
import type { Clock } from '../../base/clock.ts';
import { newUid, ROOT } from '../../base/uid.ts';
import { GroupSchema, OrgStatus } from '../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitySchema } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { FIRST_ORGANIZATION } from '../../domains/iam/groups/first-organization.ts';
import { groups } from '../../domains/iam/groups/groups.ts';
import { recordMember } from '../../domains/iam/groups/members.ts';
import { identities } from '../../domains/iam/identities/identities.ts';
import { OPERATOR } from '../../domains/iam/roles/builtin-roles.ts';
import { newBinding, roleBindings } from '../../domains/iam/roles/role-bindings.ts';
import { find } from '../../resource/read.ts';
import { insert } from '../../resource/write.ts';
import { getSetting, putSettingIfAbsent } from '../../store/settings.ts';
import type { Store, Transaction } from '../../store/store.ts';
import { deleteOwnerFile, newOwner, type Owner, readOwner, relationshipOf, saveOwner } from './owner-key.ts';

export interface Bootstrap {
  /** The first organization. Its name is empty when it was deleted. */
  readonly organization: { readonly uid: string; readonly name: string };
  /** Whether this start created it. */
  readonly firstStart: boolean;
}

/**
 * Creates the first organization and its owner, once per database. The key of the owner is written to disk before the
 * transaction, and after a crash in between the next start uses that key. So there is never an owner without a key.
 */
export async function bootstrap(store: Store, dataDir: string, name: string, clock: Clock): Promise<Bootstrap> {
  const existing = await getSetting(store.reader, FIRST_ORGANIZATION);
  if (existing) return { organization: await describeOrganization(store, existing), firstStart: false };

  const owner = (await readOwner(dataDir)) ?? (await newOwner());
  await saveOwner(dataDir, owner);
  const uid = await store.write(async (tx) => {
    const winner = await putSettingIfAbsent(tx, FIRST_ORGANIZATION, owner.organization);
    if (winner === owner.organization) await insertOrganization(tx, owner, name, clock());
    return winner;
  });
  const firstStart = uid === owner.organization;
  // Another server created the organization at the same time. The owner file is in its data directory.
  if (!firstStart) await deleteOwnerFile(dataDir);
  return { organization: await describeOrganization(store, uid), firstStart };
}

async function describeOrganization(store: Store, uid: string): Promise<Bootstrap['organization']> {
  const group = (await find(store.reader, groups, uid))?.message;
  return { uid, name: group?.name ?? '' };
}

async function insertOrganization(tx: Transaction, owner: Owner, name: string, now: number): Promise<void> {
  const founderBinding = newUid(owner.organization);
  const organization = create(GroupSchema, { name, status: OrgStatus.READY });
  const state = { founderBinding };
  await insert(tx, groups, { message: organization, uid: owner.organization, parent: ROOT, state }, now);

  const identity = create(IdentitySchema, { name: 'owner', relationship: relationshipOf(owner) });
  await insert(tx, identities, { message: identity, uid: owner.identity, parent: ROOT }, now);

  const binding = newBinding(owner.identity, OPERATOR.uid);
  await insert(tx, roleBindings, { message: binding, uid: founderBinding, parent: owner.organization }, now);
  recordMember(tx, owner.organization, owner.identity);
}
