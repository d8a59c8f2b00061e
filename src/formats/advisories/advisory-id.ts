import { createHash } from 'node:crypto';

/** Digits and letters that cannot be confused with one another and do not form words. */
export const ADVISORY_ID_ALPHABET = '23456789cfghjmpqrvwx';
const LENGTH = 12;
const ADVISORY_ID = new RegExp(`^CGA(?:-[${ADVISORY_ID_ALPHABET}]{4}){3}$`);

export const isAdvisoryId = (text: string): boolean => ADVISORY_ID.test(text);

/**
 * Formats an id such as `CGA-2c5g-9xvw-m7q4`. `indexAt` returns the index in the alphabet of each of the 12 characters.
 */
export const formatAdvisoryId = (indexAt: (position: number) => number): string =>
  `CGA-${Array.from({ length: LENGTH }, (_, position) => ADVISORY_ID_ALPHABET[indexAt(position)])
    .join('')
    .replaceAll(/.{4}(?=.)/g, '$&-')}`;

/** Derives an id from a hash of `parts`, for advisories whose source has no such id, such as an OSV record. */
export function deriveAdvisoryId(...parts: readonly string[]): string {
  const hash = createHash('sha256').update(JSON.stringify(parts)).digest();
  // With one byte for each character, some characters would be much more frequent than others.
  return formatAdvisoryId((position) => hash.readUInt16BE(position * 2) % ADVISORY_ID_ALPHABET.length);
}
