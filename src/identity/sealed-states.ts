import { keyIdOf, type SealingKey, seal, open as unseal } from '../base/secretbox.ts';
import { subscriptions } from '../domains/events/subscriptions.ts';
import { LOST_SECRET, secretContext, type WebhookSecrets } from '../domains/events/webhook-secret.ts';
import { clientSecretContext, identityProviders } from '../domains/iam/identity-providers/identity-providers.ts';
import type { Resource } from '../resource/definition.ts';

type State = Readonly<Record<string, unknown>>;

export type Reseal = (sealed: string, context: string) => string;

/** A kind of resource whose private state contains sealed secrets. */
export interface SealedState {
  readonly resource: Pick<Resource, 'kind' | 'schema'>;
  /** What the secret is, for messages. */
  readonly secret: string;
  /** How to set the secret again. */
  readonly repair: (uid: string) => string;
  /** The state with every secret sealed again. */
  change(uid: string, state: State, reseal: Reseal): State;
  /** The state without its secrets. */
  withoutSecrets(state: State): State;
}

/** All resources with sealed secrets. */
export const SEALED_STATES: readonly SealedState[] = [
  {
    resource: subscriptions,
    secret: 'webhook secret',
    repair: (uid) => `wharf events rotate-secret ${uid} && wharf events enable ${uid}`,
    change(uid, state, reseal) {
      const { secret, previous } = state as unknown as WebhookSecrets;
      // Lost with an earlier master key.
      if (secret === LOST_SECRET) return state;
      const context = secretContext(uid);
      return {
        ...state,
        secret: reseal(secret, context),
        ...(previous && { previous: { ...previous, secret: reseal(previous.secret, context) } }),
      };
    },
    withoutSecrets: ({ previous: _, ...state }) => ({ ...state, secret: LOST_SECRET }),
  },
  {
    resource: identityProviders,
    secret: 'client secret',
    repair: (uid) => `wharf iam identity-providers update ${uid} --oidc.client-secret @<file>`,
    change: (uid, state, reseal) =>
      typeof state.clientSecret === 'string'
        ? { ...state, clientSecret: reseal(state.clientSecret, clientSecretContext(uid)) }
        : state,
    withoutSecrets: ({ clientSecret: _, ...state }) => state,
  },
];

// Bypasses src/resource/write.ts on purpose: nothing is derived from a sealed secret, and it is not an update.
export const UPDATE_STATE = 'UPDATE resource SET state = $3 WHERE kind = $1 AND uid = $2';

/** Seals a secret with `target`, unless it is already. Throws if none of the keys opens it. */
export function resealOne(keys: readonly SealingKey[], target: SealingKey, sealed: string, context: string): string {
  const id = keyIdOf(sealed);
  if (id === target.id) return sealed;
  const former = keys.filter((key) => (id === undefined ? true : key.id === id));
  for (const key of former) {
    try {
      return seal(target, unseal(key, sealed, context), context);
    } catch {
      // Version 1 does not name its key.
    }
  }
  throw new Error(`cannot decrypt a secret (${context}): it was sealed with a master key that is not given`);
}
