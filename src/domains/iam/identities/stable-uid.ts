import { createHash } from 'node:crypto';
import { canonicalIssuer } from '../../../base/issuer-url.ts';

/**
 * The uid of the person whom an issuer knows by a subject, before and after they register. A digest of both, each with
 * its length in front, so that no other pair makes the same text.
 */
export function stableUid(issuer: string, subject: string): string {
  const hash = createHash('sha256').update('wharfinger identity\n');
  for (const part of [canonicalIssuer(issuer), subject]) hash.update(`${Buffer.byteLength(part)}:`).update(part);
  return hash.digest('hex').slice(0, 40);
}
