import { randomBytes } from 'node:crypto';
import type { Transaction } from '../../store/store.ts';

/** Encrypts a secret for a row that `tx` writes. It can be decrypted with the same context only. */
export type Seal = (tx: Transaction, secret: string, context: string) => Promise<string>;

/** The private state of a subscription: the encrypted secrets that deliveries are signed with. */
export interface WebhookSecrets {
  /** LOST_SECRET after the master key was lost. The sink is then disabled until the secret is rotated. */
  readonly secret: string;
  /** The secret before the last rotation, which is valid until `until`, in milliseconds. */
  readonly previous?: { readonly secret: string; readonly until: number };
}

export const LOST_SECRET = '';

const BYTES = 32;

/** A new random secret in the format of Standard Webhooks. */
export const newWebhookSecret = (): string => `whsec_${randomBytes(BYTES).toString('base64')}`;

/** The encryption context of the secrets of a subscription. */
export const secretContext = (uid: string): string => `webhook secret of subscription ${uid}`;
