import type { Config } from './config.ts';
import type { QuotaLimits } from './limits/quotas.ts';

/** Far more than one client needs, and less than one process can serve, so that one identity cannot use all of it. */
const IDENTITY_RATE = 2_000;
/** Enough for an office or a build farm behind one address, whose registry clients first ask without a token. */
const ADDRESS_RATE = 500;

/**
 * The rates of a server. Unless they are set, a server that only this machine can reach has none: its clients are those
 * of its user, such as a load test.
 */
export function ratesOf({ listen, identityRate, addressRate }: Config) {
  const isLocal = /^(?:localhost|127(?:\.\d+){3}|::1)$/i.test(listen.host);
  return {
    perIdentity: identityRate ?? (isLocal ? Infinity : IDENTITY_RATE),
    perAddress: addressRate ?? (isLocal ? Infinity : ADDRESS_RATE),
  };
}

export const quotaLimitsOf = (config: Config): QuotaLimits => ({
  refreshTokens: config.maxRefreshTokens,
  registrations: config.maxRegistrations,
  organizations: config.maxOrgs,
  resources: config.maxOrgResources,
  openUploads: config.maxOpenUploads,
  storageBytes: config.maxOrgStorage,
});
