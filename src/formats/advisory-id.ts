import { createHash } from 'node:crypto';

/** Digits and letters that nobody mistakes for one another, and that spell no words. */
export const ALPHABET = '23456789cfghjmpqrvwx';
const LENGTH = 12;
const ADVISORY_ID = new RegExp(`^CGA(?:-[${ALPHABET}]{4}){3}$`);

export const isAdvisoryId = (text: string): boolean => ADVISORY_ID.test(text);

/** `CGA-2c5g-9xvw-m7q4` of twelve numbers below the length of the alphabet. */
export const advisoryIdOf = (draw: (place: number) => number): string =>
  `CGA-${Array.from({ length: LENGTH }, (_, place) => ALPHABET[draw(place)])
    .join('')
    .replaceAll(/.{4}(?=.)/g, '$&-')}`;

/** The same for the same words, wherever and whenever: for advisories whose source has no such id, as an OSV record. */
export function advisoryIdFrom(...words: readonly string[]): string {
  const hash = createHash('sha256').update(JSON.stringify(words)).digest();
  // Two bytes for a letter, or some letters would be much likelier than others.
  return advisoryIdOf((place) => hash.readUInt16BE(place * 2) % ALPHABET.length);
}
