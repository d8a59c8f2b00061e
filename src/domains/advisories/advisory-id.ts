import { randomInt } from 'node:crypto';
import { ADVISORY_ID_ALPHABET, formatAdvisoryId } from '../../formats/advisories/advisory-id.ts';

export { deriveAdvisoryId, isAdvisoryId } from '../../formats/advisories/advisory-id.ts';

/** A random id such as `CGA-2c5g-9xvw-m7q4`. There are 20^12, so that collisions are improbable. */
export const newAdvisoryId = (): string => formatAdvisoryId(() => randomInt(ADVISORY_ID_ALPHABET.length));
