/** The request ids that are accepted from a client: short, and safe in a log line. */
const REQUEST_ID = /^[\w.-]{1,128}$/;

/** The request id that the client sent, in one of the headers that clients use, or a new one. */
export function requestIdOf(header: (name: string) => string | undefined, newRequestId: () => string): string {
  const sent = header('x-request-id') ?? header('cgrequestid');
  return sent !== undefined && REQUEST_ID.test(sent) ? sent : newRequestId();
}
