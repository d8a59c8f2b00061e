const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Never shorter: existing clients keep a token for an hour without looking at its end. */
export const TOKEN_LIFETIME_MS = HOUR_MS;

/** After this much time a person or machine proves itself anew, however often its tokens were renewed. */
export const LOGIN_LIFETIME_MS = 30 * DAY_MS;

/** How long others may go on with the keys they know: the public keys are served with this age limit. */
export const KEY_OVERLAP_MS = 5 * MINUTE_MS;
