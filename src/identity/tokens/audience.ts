/** Whether a token of ours is meant for this server: by URL, or by host and port as registry clients name a server. */
export function isMeantFor(publicUrl: string, audiences: readonly string[]): boolean {
  const accepted = [publicUrl, `${publicUrl}/`, new URL(publicUrl).host];
  return audiences.some((audience) => accepted.includes(audience));
}
