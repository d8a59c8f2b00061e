import type { Stored } from '../../../resource/definition.ts';

/** The key in the state of an identity under which the uids of the providers are stored that it has joined through. */
export const JOINED_PROVIDERS = 'identityProviders';

/** The uids of the identity providers that a person has joined through. */
export const joinedProvidersOf = (identity: Pick<Stored, 'state'> | undefined): readonly string[] =>
  (identity?.state?.[JOINED_PROVIDERS] as readonly string[] | undefined) ?? [];
