import { Option } from 'commander';
import type { Wish } from './session.ts';

/** The flags that say what a token shall be good for. */
export interface ExchangeFlags {
  readonly audience?: readonly string[];
  readonly identity?: string;
  readonly identityProvider?: string;
  readonly scope?: readonly string[];
  readonly cap?: readonly string[];
}

const collect = (text: string, before: readonly string[] = []): readonly string[] => [...before, text];

const repeatable = (flags: string, meaning: string): Option =>
  new Option(flags, `${meaning} (repeatable)`).argParser(collect);

export const audienceOption = (): Option =>
  repeatable('--audience <name>', 'whom the token is meant for, unless the server');
export const scopeOption = (): Option => repeatable('--scope <uid>', 'the only place where the token shall be good');
export const capOption = (): Option =>
  repeatable('--cap <capability>', 'the only capability that the token shall carry, such as groups.list');
export const identityOption = (): Option =>
  new Option('--identity <uid>', 'the identity to act as, where several match the token');

export const wishOf = ({ audience, identity, identityProvider, scope, cap }: ExchangeFlags): Wish => ({
  audiences: audience,
  identity,
  identityProvider,
  scopes: scope,
  capabilities: cap,
});
