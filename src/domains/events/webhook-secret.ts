import { randomBytes } from 'node:crypto';

/** Encrypts a secret, so that the database alone does not give it away. It opens in the same context only. */
export type Seal = (secret: string, context: string) => string;

/** What a subscription keeps to itself: the secrets that deliveries are signed with, sealed. */
export interface Secrets {
  readonly secret: string;
  /** The one before, while it is still good. Until in milliseconds. */
  readonly previous?: { readonly secret: string; readonly until: number };
}

const BYTES = 32;

/** A secret in the form of Standard Webhooks. */
export const newSecret = (): string => `whsec_${randomBytes(BYTES).toString('base64')}`;

/** What a sealed secret is bound to. */
export const secretContext = (uid: string): string => `webhook secret of subscription ${uid}`;
