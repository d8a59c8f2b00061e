import { unauthenticated } from '../../base/errors.ts';

/** Refuses an access token whose audience is another server. Registry clients name a server by host and port. */
export function requireServerAudience(publicUrl: string, audiences: readonly string[]): void {
  const accepted = [publicUrl, `${publicUrl}/`, new URL(publicUrl).host];
  if (audiences.some((audience) => accepted.includes(audience))) return;
  throw unauthenticated(`invalid "aud" in the token: it is for another server. Get a token for ${publicUrl}`);
}

/** An audience of every registry token, also of one without any repository, as `docker login` gets it. */
export const REGISTRY_TOKEN = 'registry-token';

/** Whether a token with these audiences is valid at the OCI registry only. */
export const isRegistryToken = (audiences: readonly string[]): boolean => audiences.includes(REGISTRY_TOKEN);
