import { createHmac } from 'node:crypto';

export interface Signed {
  /** The same on every attempt. */
  readonly id: string;
  /** The time of this attempt, in milliseconds. */
  readonly now: number;
  readonly body: string;
}

/** The headers of Standard Webhooks: one signature for each secret, so that receivers can change theirs at leisure. */
export function signatureHeaders({ id, now, body }: Signed, secrets: readonly string[]): Record<string, string> {
  const timestamp = Math.floor(now / 1000);
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
  });
  return { 'webhook-id': id, 'webhook-timestamp': String(timestamp), 'webhook-signature': signatures.join(' ') };
}
