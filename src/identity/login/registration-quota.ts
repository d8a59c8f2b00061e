import type { ApiError } from '../../base/errors.ts';
import { rootOf } from '../../base/uid.ts';
import type { WriteContext } from '../../resource/operation.ts';

const PERIOD_MS = 3_600_000;
const COUNT = `INSERT INTO period_count (key, period, n) VALUES ($1, $2, 1)
  ON CONFLICT (key) DO UPDATE SET
    n = CASE WHEN period_count.period = excluded.period THEN period_count.n + 1 ELSE 1 END, period = excluded.period
  RETURNING n`;

/**
 * Counts a person who joins a group. Returns an error if too many have joined its organization within this hour. Counted
 * by organization, so that no other organization, even one that trusts the same issuer, can prevent registrations.
 */
export async function countRegistration({ db, now }: WriteContext, group: string): Promise<ApiError | undefined> {
  const limit = db.quotas?.limits.registrations ?? Infinity;
  if (limit === Infinity) return undefined;
  const organization = rootOf(group);
  const period = Math.floor(now / PERIOD_MS);
  const [row] = await db.runReturning<{ n: number }>(COUNT, `registrations ${organization}`, period);
  if (!row || row.n <= limit) return undefined;
  return db.quotas?.refuse(
    'registrations',
    `organization:${organization}`,
    `${limit} people may register in an organization within an hour; retry after the delay, or ask an operator of the server to raise the limit`,
    (period + 1) * PERIOD_MS - now,
  );
}
