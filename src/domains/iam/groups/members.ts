import type { BulkInsert } from '../../../store/bulk-insert.ts';
import { batchPlaceholders, parameterBatches } from '../../../store/parameter-batches.ts';
import type { Reader, Transaction } from '../../../store/store.ts';

// The people who have joined an organization by an act of their own: they founded it, redeemed an invite, registered
// through its identity provider, or requested access. A role binding alone is no such act, because its creator can
// enter any uid.

const MEMBERS: BulkInsert = {
  into: 'organization_member',
  columns: { organization: 'text', identity: 'text' },
  conflict: 'skip',
};
const FIND = `SELECT identity FROM organization_member
  WHERE organization = $1 AND identity IN (${batchPlaceholders(2)})`;

export const recordMember = (tx: Transaction, organization: string, identity: string): void =>
  tx.insertUnawaited(MEMBERS, [organization, identity]);

/** Those of `identities` that have joined the organization. */
export async function membersAmong(
  db: Reader,
  organization: string,
  identities: readonly string[],
): Promise<ReadonlySet<string>> {
  const members = new Set<string>();
  for (const some of parameterBatches(identities)) {
    for (const { identity } of await db.all<{ identity: string }>(FIND, organization, ...some)) members.add(identity);
  }
  return members;
}

export const forgetOrganization = (tx: Transaction, organization: string): void =>
  tx.runUnawaited('DELETE FROM organization_member WHERE organization = $1', organization);

export const forgetMember = (tx: Transaction, identity: string): void =>
  tx.runUnawaited('DELETE FROM organization_member WHERE identity = $1', identity);
