import type { JSONWebKeySet } from 'jose';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Operations } from '../../resource/operation.ts';
import type { Store } from '../../store/store.ts';
import type { AuthenticateFederated, VerifyUnregistered } from '../federation/federated-login.ts';
import { authOperations } from '../login/auth-service.ts';
import type { MasterKeys } from '../master-key.ts';
import { type AccessTokens, createAccessTokens } from '../tokens/access-tokens.ts';
import { createRefreshTokens } from '../tokens/refresh-tokens.ts';
import { createSigningKeys } from '../tokens/signing-keys.ts';
import { exchangeOperations } from './exchange.ts';

export interface TokenIssuerOptions {
  readonly store: Store;
  readonly masterKeys: MasterKeys;
  readonly clock: Clock;
  /** After how many milliseconds the signing key is replaced. Never by default. */
  readonly signingKeyMaxAgeMs?: number;
  readonly log?: Log;
  /** The URL of this server. It is the issuer of the tokens. */
  readonly publicUrl: string;
  readonly authenticateFederated: AuthenticateFederated;
  readonly verifyUnregistered: VerifyUnregistered;
}

/** The part of this server that issues tokens. */
export interface TokenIssuer {
  readonly accessTokens: AccessTokens;
  readonly operations: Operations;
  publicKeys(): Promise<JSONWebKeySet>;
}

export async function createTokenIssuer(options: TokenIssuerOptions): Promise<TokenIssuer> {
  const { store, masterKeys, clock, publicUrl, authenticateFederated, verifyUnregistered } = options;
  const { signingKeyMaxAgeMs: maxAgeMs = Infinity, log } = options;
  const signingKeys = await createSigningKeys({ store, masterKeys, clock, maxAgeMs, ...(log && { log }) });
  const accessTokens = createAccessTokens({ signingKeys, clock, issuer: publicUrl });
  const refreshTokens = createRefreshTokens({ store, clock });
  return {
    accessTokens,
    operations: {
      ...exchangeOperations({ accessTokens, refreshTokens, authenticateFederated, publicUrl }),
      ...authOperations({ accessTokens, verifyUnregistered, publicUrl }),
    },
    publicKeys: signingKeys.publicKeys,
  };
}
