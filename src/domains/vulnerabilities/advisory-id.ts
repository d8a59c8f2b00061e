import { createHash, randomInt } from 'node:crypto';

/** Digits and letters that nobody mistakes for one another, and that spell no words. */
const ALPHABET = '23456789cfghjmpqrvwx';
const LENGTH = 12;
const ADVISORY_ID = new RegExp(`^CGA(?:-[${ALPHABET}]{4}){3}$`);

const idOf = (letters: readonly (string | undefined)[]): string =>
  `CGA-${letters.join('').replaceAll(/.{4}(?=.)/g, '$&-')}`;

/** One of 20^12, so that no two ever meet: `CGA-2c5g-9xvw-m7q4`. */
export const newAdvisoryId = (): string =>
  idOf(Array.from({ length: LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]));

/** The same for the same words, wherever and whenever. */
export function advisoryIdFrom(...words: readonly string[]): string {
  const hash = createHash('sha256').update(JSON.stringify(words)).digest();
  // Two bytes for a letter, or some letters would be much likelier than others.
  return idOf(Array.from({ length: LENGTH }, (_, i) => ALPHABET[hash.readUInt16BE(i * 2) % ALPHABET.length]));
}

export const isAdvisoryId = (text: string): boolean => ADVISORY_ID.test(text);
