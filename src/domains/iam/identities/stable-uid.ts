import { createHash } from 'node:crypto';
import { canonicalIssuer } from '../../../base/issuer-url.ts';
import type { Uid } from '../../../base/uid.ts';

/**
 * The uid of the person with this issuer and subject, the same before and after the person registers. It is a digest of
 * both, each prefixed with its length, so that two different pairs never hash the same text.
 */
export function stableUid(issuer: string, subject: string): Uid {
  const hash = createHash('sha256').update('wharfinger identity\n');
  for (const part of [canonicalIssuer(issuer), subject]) hash.update(`${Buffer.byteLength(part)}:`).update(part);
  return hash.digest('hex').slice(0, 40) as Uid;
}
