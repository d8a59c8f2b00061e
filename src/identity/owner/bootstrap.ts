import { create } from '@bufbuild/protobuf';
import type { Clock } from '../../base/clock.ts';
import { newUid, ROOT } from '../../base/uid.ts';
import { type Group, GroupSchema, OrgStatus } from '../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { IdentitySchema } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { groups } from '../../domains/iam/groups/groups.ts';
import { identities } from '../../domains/iam/identities/identities.ts';
import { OPERATOR } from '../../domains/iam/roles/builtin-roles.ts';
import { newBinding, roleBindings } from '../../domains/iam/roles/role-bindings.ts';
import { find } from '../../resource/read.ts';
import { insert } from '../../resource/write.ts';
import { getSetting, putSettingIfAbsent } from '../../store/settings.ts';
import type { Store, Transaction } from '../../store/store.ts';
import { forgetOwner, newOwner, type Owner, publicKeys, readOwner, saveOwner } from './owner-key.ts';

export interface Bootstrap {
  /** The first organization. Its name is empty when it has been deleted since. */
  readonly organization: { readonly uid: string; readonly name: string };
  /** Whether this start created it. */
  readonly firstStart: boolean;
}

const ORGANIZATION = 'bootstrap.organization';

/**
 * Makes the first organization and its owner, once per database. The owner's key is on disk before the database knows
 * it, so a crash in between leaves a key that the next start uses, never an owner without a key.
 */
export async function bootstrap(store: Store, dataDir: string, name: string, clock: Clock): Promise<Bootstrap> {
  const existing = await getSetting(store.reader, ORGANIZATION);
  if (existing) return { organization: await describe(store, existing), firstStart: false };

  const owner = (await readOwner(dataDir)) ?? (await newOwner());
  await saveOwner(dataDir, owner);
  const uid = await store.write(async (tx) => {
    const winner = await putSettingIfAbsent(tx, ORGANIZATION, owner.organization);
    if (winner === owner.organization) await found(tx, owner, name, clock());
    return winner;
  });
  const firstStart = uid === owner.organization;
  // Another server was faster; its data directory holds the owner.
  if (!firstStart) await forgetOwner(dataDir);
  return { organization: await describe(store, uid), firstStart };
}

async function describe(store: Store, uid: string): Promise<Bootstrap['organization']> {
  const group = (await find(store.reader, groups, uid))?.message as Group | undefined;
  return { uid, name: group?.name ?? '' };
}

async function found(tx: Transaction, owner: Owner, name: string, now: number): Promise<void> {
  const founderBinding = newUid(owner.organization);
  const organization = create(GroupSchema, { name, status: OrgStatus.READY });
  const state = { founderBinding };
  await insert(tx, groups, { message: organization, uid: owner.organization, parent: ROOT, state }, now);

  const { issuer, subject, audience } = owner;
  const staticKeys = { issuer, subject, issuerKeys: publicKeys(owner), audiences: [audience] };
  const identity = create(IdentitySchema, { name: 'owner', relationship: { case: 'staticKeys', value: staticKeys } });
  await insert(tx, identities, { message: identity, uid: owner.identity, parent: ROOT }, now);

  const binding = newBinding(owner.identity, OPERATOR.uid);
  await insert(tx, roleBindings, { message: binding, uid: founderBinding, parent: owner.organization }, now);
}
