import { Option } from 'commander';
import type { TokenRequest } from './token-exchange.ts';

/** The flags that restrict a token. */
export interface ExchangeFlags {
  readonly audience?: readonly string[];
  readonly identity?: string;
  readonly identityProvider?: string;
  readonly scope?: readonly string[];
  readonly cap?: readonly string[];
}

const collect = (text: string, before: readonly string[] = []): readonly string[] => [...before, text];

const repeatable = (flags: string, description: string): Option =>
  new Option(flags, `${description} (repeatable)`).argParser(collect);

export const audienceOption = (): Option =>
  repeatable('--audience <name>', 'an audience of the token (default: the server)');
export const scopeOption = (): Option => repeatable('--scope <uid>', 'restrict the token to this group');
export const capOption = (): Option =>
  repeatable('--cap <capability>', 'restrict the token to this capability, such as groups.list');
export const identityOption = (): Option =>
  new Option('--identity <uid>', 'the identity to act as, if several match the token');

export const tokenRequestOf = ({ audience, identity, identityProvider, scope, cap }: ExchangeFlags): TokenRequest => ({
  audiences: audience,
  identity,
  identityProvider,
  scopes: scope,
  capabilities: cap,
});
