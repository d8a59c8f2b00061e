import type { JSONWebKeySet } from 'jose';
import type { Clock } from '../../base/clock.ts';
import type { Operations } from '../../resource/operation.ts';
import type { Store } from '../../store/store.ts';
import { authOperations } from '../login/auth-service.ts';
import type { VerifyStranger } from '../login/registration.ts';
import { createTokens, type Tokens } from '../tokens/access-tokens.ts';
import { createRefreshTokens } from '../tokens/refresh-tokens.ts';
import { createSigningKeys } from '../tokens/signing-keys.ts';
import { type AuthenticateUpstream, exchangeOperations } from './exchange.ts';

export interface IssuerOptions {
  readonly store: Store;
  readonly masterKey: Uint8Array;
  readonly clock: Clock;
  /** Where clients reach this server, which is what its tokens name as their issuer. */
  readonly publicUrl: () => string;
  readonly authenticateUpstream: AuthenticateUpstream;
  readonly verifyStranger: VerifyStranger;
}

/** This server as an issuer of tokens. */
export interface Issuer {
  readonly tokens: Tokens;
  readonly operations: Operations;
  publicKeys(): Promise<JSONWebKeySet>;
}

export async function createIssuer(options: IssuerOptions): Promise<Issuer> {
  const { store, masterKey, clock, publicUrl, authenticateUpstream, verifyStranger } = options;
  const signingKeys = await createSigningKeys({ store, masterKey, clock });
  const tokens = createTokens({ signingKeys, clock, issuer: publicUrl });
  const refreshTokens = createRefreshTokens({ store, clock });
  return {
    tokens,
    operations: {
      ...exchangeOperations({ tokens, refreshTokens, authenticateUpstream, publicUrl }),
      ...authOperations({ tokens, verifyStranger }),
    },
    publicKeys: signingKeys.publicKeys,
  };
}
