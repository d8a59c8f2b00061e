const EARLIEST = Date.parse('0001-01-01T00:00:00Z');
const LATEST = Date.parse('9999-12-31T23:59:59.999Z');

/** Whether a time in milliseconds is within the years that a Timestamp of the API can have. */
export const isApiTime = (ms: number): boolean => ms >= EARLIEST && ms <= LATEST;
