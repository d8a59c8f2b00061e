/** The times that the parts of a stopping server have to finish. Commands need them without loading these parts. */

/** How long running requests to sinks may take when the server stops. */
export const DELIVERY_STOP_MS = 3000;

/** How long running requests may take after the port is closed. */
export const REQUESTS_STOP_MS = 10_000;
