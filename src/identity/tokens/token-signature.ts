import { hash } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { type KeySet, keysFitting, type SignatureHeader } from '../../base/jwks.ts';
import { createLru } from '../../base/lru.ts';
import { OutgoingError } from '../outgoing/permitted-url.ts';
import { isSignedWith, readToken, type Token, timeProblem } from './jwt.ts';

/** Why a token is not accepted, in words for whoever sent it. */
export interface Refusal {
  /**
   * `token`: it is malformed, out of its time or wrongly signed. `issuer`: the keys cannot be had, so nobody can tell.
   * `claim`: it is genuine, but `claim` is not what the identity asks for. `identity`: nobody can log in as that one.
   */
  readonly kind: 'token' | 'issuer' | 'claim' | 'identity';
  readonly claim?: string;
  readonly reason: string;
}

/**
 * A token, and the key sets that its signature has been checked with. A set stands for itself alone: when the keys of an
 * issuer are fetched again, or an identity is given others, that makes another set, and the signature is checked anew.
 * So what is remembered about a token never outlives the withdrawal of a key by longer than the key cache itself does.
 */
export interface OpenToken extends Token {
  readonly digest: string;
  readonly provenBy: WeakSet<KeySet>;
}

export type KeySource = (header: SignatureHeader) => KeySet | Promise<KeySet>;

export interface Proofs {
  /** Takes a token apart, or says why that cannot be done. */
  open(text: string): OpenToken | Refusal;
  /** What is wrong with a token, whoever it may be meant for; nothing when its time is now and its signature holds. */
  flawOf(text: string, token: OpenToken, source: KeySource): Promise<Refusal | undefined>;
}

const MAX_TOKENS = 5000;

/** Checks signatures, and remembers those that hold: a token in frequent use costs no cryptography. */
export function createProofs(clock: Clock): Proofs {
  // By digest, because a token in memory is a secret too. Only genuine ones, so that garbage pushes nothing out.
  const proven = createLru<string, OpenToken>(MAX_TOKENS);

  return {
    open(text) {
      const digest = hash('sha256', text, 'base64url');
      const known = proven.get(digest);
      if (known) return known;
      const token = readToken(text);
      if (typeof token === 'string') return refuse(token);
      return { ...token, digest, provenBy: new WeakSet() };
    },

    async flawOf(text, token, source) {
      const untimely = timeProblem(token.claims, clock());
      if (untimely) return refuse(untimely);
      const keys = await keysFrom(source, token);
      if ('reason' in keys) return keys;
      if (token.provenBy.has(keys)) return undefined;
      const fitting = keysFitting(keys, token.header);
      if (fitting.length === 0) return refuse('the token is signed with an unknown key');
      for (const key of fitting) {
        if (!(await isSignedWith(text, key))) continue;
        token.provenBy.add(keys);
        proven.set(token.digest, token);
        return undefined;
      }
      return refuse('the signature of the token is not valid');
    },
  };
}

async function keysFrom(source: KeySource, { header, claims }: Token): Promise<KeySet | Refusal> {
  try {
    return await source(header);
  } catch (error) {
    if (!(error instanceof OutgoingError)) throw error;
    return { kind: 'issuer', reason: `the keys of ${claims.iss} cannot be fetched: ${error.message}` };
  }
}

const refuse = (reason: string): Refusal => ({ kind: 'token', reason });
