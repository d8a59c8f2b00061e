import { setTimeout as wait } from 'node:timers/promises';
import { type HttpRequest, type HttpResponse, sendRequest } from './http.ts';

/** A longer delay is not a short wait for a rate limit: somebody has to delete something or to raise a quota. */
const MAX_DELAY_S = 30;
/** How long a command waits in all. */
const MAX_TOTAL_S = 120;
const TOO_MANY_REQUESTS = 429;

/**
 * Sends a request, and again after the delay that the server asks for while it refuses the request with 429. That is
 * safe for every request: the server has done nothing of one that it refused.
 */
export async function sendWithRetries(request: HttpRequest, say: (text: string) => void): Promise<HttpResponse> {
  for (let waited = 0; ; ) {
    const response = await sendRequest(request);
    const delay = response.status === TOO_MANY_REQUESTS ? secondsIn(response.headers.get('retry-after')) : undefined;
    if (delay === undefined || delay > MAX_DELAY_S || waited + delay > MAX_TOTAL_S) return response;
    say(`${request.server} is busy or limits requests; trying again in ${delay} s\n`);
    // Jitter, so that several clients do not all come back at the same moment.
    await wait((delay + Math.random() / 4) * 1000);
    waited += delay;
  }
}

/** Undefined for a date, which this server never sends, and for anything else that is not a number. */
const secondsIn = (header: string | null): number | undefined =>
  header !== null && /^\d{1,6}$/.test(header) ? Number(header) : undefined;
