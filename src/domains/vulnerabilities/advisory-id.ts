import { randomInt } from 'node:crypto';
import { ALPHABET, advisoryIdOf } from '../../formats/advisory-id.ts';

export { advisoryIdFrom, isAdvisoryId } from '../../formats/advisory-id.ts';

/** One of 20^12, so that no two ever meet: `CGA-2c5g-9xvw-m7q4`. */
export const newAdvisoryId = (): string => advisoryIdOf(() => randomInt(ALPHABET.length));
