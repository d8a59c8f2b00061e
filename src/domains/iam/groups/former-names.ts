import { alreadyExists, quotaExceeded } from '../../../base/errors.ts';
import type { WriteContext } from '../../../resource/operation.ts';
import { isOperator } from './create-organization.ts';

// The name of an organization is the first part of the names of its images. If another tenant could take a former name,
// clients that still use it would pull the images of that tenant. Names of groups inside of an organization need no such
// rule, because its owners control all of them.

const DAY = 24 * 60 * 60 * 1000;

/** How long a former name is reserved. */
const RESERVED_MS = 30 * DAY;

/** How many names an organization can reserve by renaming, and an identity by deleting organizations. */
const MAX_PER_ORGANIZATION = 10;
const MAX_PER_IDENTITY = 100;

const DELETE_EXPIRED = 'DELETE FROM former_organization_name WHERE reserved_until <= $1';
const RESERVE = `INSERT INTO former_organization_name (name, organization, deleted_by, reserved_until)
  VALUES ($1, $2, $3, $4) ON CONFLICT (name) DO UPDATE SET
  organization = excluded.organization, deleted_by = excluded.deleted_by, reserved_until = excluded.reserved_until`;
const COUNT_OF_ORGANIZATION = `SELECT count(*) AS n FROM former_organization_name
  WHERE organization = $1 AND name <> $2 AND name <> $3`;
const COUNT_OF_IDENTITY = 'SELECT count(*) AS n FROM former_organization_name WHERE deleted_by = $1';
const FIND = 'SELECT organization, deleted_by, reserved_until FROM former_organization_name WHERE name = $1';

/** Reserves the former name of a renamed organization. Refuses to reserve too many. */
export async function reserveRenamed(ctx: WriteContext, uid: string, before: string, after: string): Promise<void> {
  const { db, caller, now } = ctx;
  await db.run(DELETE_EXPIRED, now);
  const row = await db.get<{ n: number }>(COUNT_OF_ORGANIZATION, uid, before, after);
  if (Number(row?.n ?? 0) >= MAX_PER_ORGANIZATION && !isOperator(caller)) {
    throw quotaExceeded(
      `organization:${uid}`,
      `the organization has had ${MAX_PER_ORGANIZATION} other names in the last 30 days; rename it later, or ask an operator`,
    );
  }
  await db.run(RESERVE, before, uid, null, now + RESERVED_MS);
}

/** Reserves the name of a deleted organization, for the caller too, unless the caller has reserved many. */
export async function reserveDeleted({ db, caller, now }: WriteContext, uid: string, name: string): Promise<void> {
  await db.run(DELETE_EXPIRED, now);
  const row = await db.get<{ n: number }>(COUNT_OF_IDENTITY, caller.uid);
  if (Number(row?.n ?? 0) >= MAX_PER_IDENTITY) return;
  await db.run(RESERVE, name, uid, caller.uid, now + RESERVED_MS);
}

/**
 * Refuses a name that is reserved for another organization. Must be called after the name was stored as a unique key:
 * a transaction that releases the name is committed then, so that this one sees the reservation.
 */
export async function requireNotReserved({ db, caller, now }: WriteContext, uid: string, name: string): Promise<void> {
  const row = await db.get<{ organization: string; deleted_by: string | null; reserved_until: number }>(FIND, name);
  if (!row || row.reserved_until <= now || row.organization === uid) return;
  if (row.deleted_by === caller.uid || isOperator(caller)) return;
  const until = new Date(row.reserved_until).toISOString();
  throw alreadyExists(
    'group',
    name,
    `the name ${name} belonged to another organization and is reserved until ${until}; choose another name, or ask an operator`,
  );
}
