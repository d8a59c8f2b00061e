import { createHmac } from 'node:crypto';

export interface SignedContent {
  /** The same for every attempt. */
  readonly id: string;
  /** The time of this attempt, in milliseconds. */
  readonly now: number;
  readonly body: string;
}

/**
 * Returns the headers of Standard Webhooks. There is one signature per secret, so that receivers can switch to a new
 * secret while the previous one is still valid.
 */
export function signatureHeaders({ id, now, body }: SignedContent, secrets: readonly string[]): Record<string, string> {
  const timestamp = Math.floor(now / 1000);
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
  });
  return { 'webhook-id': id, 'webhook-timestamp': String(timestamp), 'webhook-signature': signatures.join(' ') };
}
