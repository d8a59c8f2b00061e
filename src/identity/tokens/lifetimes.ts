const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Must not be shorter: existing clients use a token for an hour without reading its expiry time. */
export const ACCESS_TOKEN_LIFETIME_MS = HOUR_MS;

/** After this time users and workloads must authenticate again. Refreshing tokens does not extend it. */
export const LOGIN_LIFETIME_MS = 30 * DAY_MS;

/** How long other servers may cache the public keys. They are served with this max-age. */
export const KEY_OVERLAP_MS = 5 * MINUTE_MS;
