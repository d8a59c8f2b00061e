import { randomInt } from 'node:crypto';

/** Digits and letters that nobody mistakes for one another, and that spell no words. */
const ALPHABET = '23456789cfghjmpqrvwx';
const ADVISORY_ID = new RegExp(`^CGA(?:-[${ALPHABET}]{4}){3}$`);

const part = (): string => Array.from({ length: 4 }, () => ALPHABET[randomInt(ALPHABET.length)]).join('');

/** One of 20^12, so that no two ever meet: `CGA-2c5g-9xvw-m7q4`. */
export const newAdvisoryId = (): string => `CGA-${part()}-${part()}-${part()}`;

export const isAdvisoryId = (text: string): boolean => ADVISORY_ID.test(text);
