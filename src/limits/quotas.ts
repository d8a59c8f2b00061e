import type { Clock } from '../base/clock.ts';
import { type ApiError, quotaExceeded } from '../base/errors.ts';
import { createLru } from '../base/lru.ts';

/** The names of the limits, as the metric of refusals shows them. */
export type QuotaName =
  | 'identity_rate'
  | 'address_rate'
  | 'organizations'
  | 'resources'
  | 'registrations'
  | 'open_uploads'
  | 'storage';

export type CountRefusal = (quota: QuotaName) => void;

/** The limits of what is stored. They hold for all servers of a database together. Infinity is no limit. */
export interface QuotaLimits {
  /** Live refresh tokens per identity. A login beyond it ends the oldest one. */
  readonly refreshTokens: number;
  /** New people per organization and hour. */
  readonly registrations: number;
  /** Organizations that one identity has created and that still exist. */
  readonly organizations: number;
  /** Resources of one kind per organization. */
  readonly resources: number;
  /** Unfinished blob uploads per organization. */
  readonly openUploads: number;
  /** Bytes of blobs, manifests and unfinished uploads per organization. */
  readonly storageBytes: number;
}

/** Checks the quotas of a server. Every transaction of a request has them. */
export interface Quotas {
  readonly limits: QuotaLimits;
  /** Returns the error for a quota that is exhausted, and counts the refusal. */
  refuse(quota: QuotaName, subject: string, description: string, delayMs?: number): ApiError;
  /** Throws if an organization was at its limit for resources of a kind a moment ago. Reads no database. */
  requireNotFull(organization: string, kind: string): void;
  /** Throws if an organization has more than its limit of resources of a kind. `isPreliminary`: it is counted again. */
  requireResources(organization: string, kind: string, count: number, isPreliminary: boolean): void;
}

export interface QuotasOptions {
  readonly limits: QuotaLimits;
  readonly clock: Clock;
  readonly countRefusal: CountRefusal;
}

/**
 * How long an organization is refused without a look at the database after it has reached its limit. A create that is
 * refused after it has written rolls back all creates that share its transaction, so a client that repeats it would
 * slow down other organizations.
 */
const FULL_MS = 1_000;

export function createQuotas({ limits, clock, countRefusal }: QuotasOptions): Quotas {
  const fullUntil = createLru<string, number>(1_000);
  let wasFull = false;

  const refuse: Quotas['refuse'] = (quota, subject, description, delayMs) => {
    countRefusal(quota);
    return quotaExceeded(subject, description, delayMs);
  };

  const tooMany = (organization: string, kind: string): ApiError =>
    quotaExceeded(
      `organization:${organization}`,
      `an organization may have ${limits.resources} resources of the kind ${kind}; delete some, or ask an operator of the server to raise the limit`,
    );

  return {
    limits,
    refuse,
    requireNotFull(organization, kind) {
      if (!wasFull) return;
      const until = fullUntil.get(`${organization} ${kind}`);
      if (until === undefined) return;
      const now = clock();
      // Bounded, so that a clock that was set back does not refuse for longer.
      if (now < until && until - now <= FULL_MS) {
        countRefusal('resources');
        throw tooMany(organization, kind);
      }
      fullUntil.delete(`${organization} ${kind}`);
    },
    requireResources(organization, kind, count, isPreliminary) {
      if (count <= limits.resources) return;
      if (!isPreliminary) {
        countRefusal('resources');
        wasFull = true;
        fullUntil.set(`${organization} ${kind}`, clock() + FULL_MS);
      }
      throw tooMany(organization, kind);
    },
  };
}
