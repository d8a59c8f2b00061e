import { unauthenticated } from '../../base/errors.ts';

/** Refuses an access token whose audience is another server. Registry clients name a server by host and port. */
export function requireServerAudience(publicUrl: string, audiences: readonly string[]): void {
  const accepted = [publicUrl, `${publicUrl}/`, new URL(publicUrl).host];
  if (audiences.some((audience) => accepted.includes(audience))) return;
  throw unauthenticated(`invalid "aud" in the token: it is for another server. Get a token for ${publicUrl}`);
}
